/** Numbers and times as people read them. */

/** "45 s", "12 min", "3 h 20 min", "30 h", "2 d 4 h". */
export function duration(seconds: number): string {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 10 && hours < 48) return `${Math.round(minutes / 60)} h`;
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
}

/** "just now", "3 min ago", "yesterday", "12 Mar". */
export function relative(then: Date, now: Date): string {
  const s = (now.getTime() - then.getTime()) / 1000;
  if (s < 10) return "just now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  const days = Math.round((midnight(now) - midnight(then)) / 86_400_000);
  if (days <= 1) return "yesterday";
  if (days < 7) return `${days} days ago`;
  const sameYear = then.getFullYear() === now.getFullYear();
  return then.toLocaleDateString(undefined, { day: "numeric", month: "short", year: sameYear ? undefined : "numeric" });
}

function midnight(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

/** "1,234". */
export const count = (value: number) => value.toLocaleString("en-US");

/** A fixed number of decimals, with a true minus sign; "–" for nothing. */
export function fixed(value: number | null | undefined, decimals: number): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value.toFixed(decimals).replace("-", "−");
}

/** As `fixed`, with a plus sign where it is due. */
export function signed(value: number | null | undefined, decimals: number): string {
  const text = fixed(value, decimals);
  return value !== null && value !== undefined && value > 0 ? `+${text}` : text;
}

/** "3.2 MB": powers of 1000. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${value} B`;
  let scaled = value;
  for (const unit of ["kB", "MB", "GB", "TB"]) {
    scaled /= 1000;
    if (scaled < 999.5 || unit === "TB") return `${scaled.toFixed(scaled < 9.95 ? 1 : 0)} ${unit}`;
  }
  return "";
}
