import { useEffect, useState } from "react";

import { relative } from "./format";

/** A moment as people say it, the exact one on hover; follows the clock. */
export function Time({ at }: { at: string | null }) {
  const [now, setNow] = useState(() => new Date());
  const then = at === null ? null : new Date(at);
  const recent = then !== null && now.getTime() - then.getTime() < 3_600_000;
  useEffect(() => {
    if (at === null) return;
    const timer = setInterval(() => setNow(new Date()), recent ? 5_000 : 60_000);
    return () => clearInterval(timer);
  }, [at, recent]);
  if (then === null) return <span className="time">–</span>;
  return (
    <time className="time" dateTime={at ?? undefined} title={then.toLocaleString(undefined, EXACT)}>
      {relative(then, now)}
    </time>
  );
}

const EXACT: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "long" };
