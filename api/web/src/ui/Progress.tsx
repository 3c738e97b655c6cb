import { duration } from "./format";

/** A bar with its share; the text beside it is the caller's. */
export function Progress({ share, state = "running", label }: { share: number; state?: string; label: string }) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10;
  return (
    <div
      className={`progress progress-${state}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(percent)}
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  );
}

/** "2 min left", or "" while nothing can be said. */
export function timeLeft(eta_s: number | null): string {
  return eta_s === null ? "" : eta_s < 1 ? "a moment left" : `${duration(eta_s)} left`;
}
