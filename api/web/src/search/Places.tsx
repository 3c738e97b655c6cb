/** The loss by place in a window, on the test part: whether a model makes use of what stands further back. */

import type { Result } from "../api/types";
import { fixed } from "../ui/format";
import { decimals } from "./model/format";

const WIDTH = 420;
const HEIGHT = 110;
const LEAST = 4; // points; fewer are no curve

export function Places({ positions }: { positions: NonNullable<Result["positions"]> }) {
  const derived = doubling(positions.derived);
  const parent = positions.parent && doubling(positions.parent);
  const scored = derived.filter((value) => value !== null);
  if (scored.length < LEAST) return null;
  const known = [...scored, ...(parent ?? []).filter((value) => value !== null)];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const digits = decimals(high) - 1; // two, of losses near 0 more
  const said = `from ${fixed(scored[0], digits)} at the front to ${fixed(scored.at(-1), digits)} at the end`;
  return (
    <figure className="places">
      <figcaption>
        Loss by place in a window <span className="quieter">nats, on the test part: {said}</span>
      </figcaption>
      <svg viewBox={`-34 -8 ${WIDTH + 54} ${HEIGHT + 28}`} role="img" aria-label={`Loss by place, ${said}`}>
        {[low, high].map((value, at) => (
          <text key={at} x="-8" y={at ? 4 : HEIGHT + 4} textAnchor="end">
            {fixed(value, digits)}
          </text>
        ))}
        {derived.map((_, at) => (
          <text key={at} x={(at / (derived.length - 1)) * WIDTH} y={HEIGHT + 18} textAnchor="middle">
            {Math.min(2 ** at, positions.derived.length)}
          </text>
        ))}
        {parent && <path className="places-parent" d={path(parent, low, high)} />}
        <path d={path(derived, low, high)} />
      </svg>
      <span className="quieter">
        solid: derived{parent && "; dashed: parent"}; at 8 stands the mean of places 5 to 8, and so on
      </span>
    </figure>
  );
}

/** Means over places 1, 2, 3-4, 5-8, ...: single places, of few windows each, are all noise. */
export function doubling(values: readonly (number | null)[]): (number | null)[] {
  const means: (number | null)[] = [];
  for (let from = 0, to = 1; from < values.length; from = to, to *= 2) {
    const scored = values.slice(from, to).filter((value) => value !== null);
    means.push(scored.length ? scored.reduce((sum, value) => sum + value, 0) / scored.length : null);
  }
  return means;
}

/** A line through the values; where one is null, it begins anew behind it. */
export function path(values: readonly (number | null)[], low: number, high: number): string {
  let drawing = false;
  return values
    .map((value, at) => {
      const command = drawing ? "L" : "M";
      drawing = value !== null;
      if (value === null) return "";
      const x = (at / Math.max(1, values.length - 1)) * WIDTH;
      const y = high > low ? ((high - value) / (high - low)) * HEIGHT : HEIGHT / 2;
      return `${command}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}
