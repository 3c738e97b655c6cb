/**
 * An architecture as a row of slots, in the families' colours and letters; undecided slots are hatched.
 *
 * An undecided slot of a search that is under way has the label "": what leads there leads by chance, and is not shown.
 */

import { memo } from "react";

import type { Look } from "../blocks";

/** From here on the gaps between slots are thinner. */
const MANY = 24;

export const Strip = memo(function Strip({
  labels,
  undecided = [],
  look,
  size = "normal",
  fill = false,
  title,
}: {
  /** The candidate of each slot. */
  labels: readonly string[];
  /** Slots, from 0. */
  undecided?: readonly number[];
  look: (label: string) => Look;
  size?: "normal" | "small";
  /** Take the whole width, such as under a heat map. */
  fill?: boolean;
  /** What the strip is, for screen readers: "leading blocks". */
  title: string;
}) {
  const open = new Set(undecided);
  const word = (label: string, slot: number) =>
    label === "" ? "undecided" : open.has(slot) ? `${label} (undecided)` : label;
  const many = labels.length > MANY;
  return (
    <div
      className={`strip strip-${size} ${fill ? "strip-fill" : ""} ${many ? "strip-many" : ""}`}
      role="img"
      aria-label={`${title}: ${labels.map(word).join(", ")}`}
    >
      {labels.map((label, slot) => {
        const name = `slot ${slot + 1}: ${word(label, slot)}`;
        if (label === "") {
          return (
            <div key={slot} className="strip-slot strip-open" title={name}>
              <span>?</span>
            </div>
          );
        }
        const { letter, colour, ink } = look(label);
        return (
          <div
            key={slot}
            className={open.has(slot) ? "strip-slot strip-undecided" : "strip-slot"}
            style={{ "--colour": colour, "--on": ink } as React.CSSProperties}
            title={name}
          >
            <span>{letter}</span>
          </div>
        );
      })}
    </div>
  );
});

/** The slots of a search that has not reported yet. */
export function BlankStrip({
  n,
  size = "normal",
  fill = false,
}: {
  n: number;
  size?: "normal" | "small";
  fill?: boolean;
}) {
  return (
    <div
      className={`strip strip-blank strip-${size} ${fill ? "strip-fill" : ""} ${n > MANY ? "strip-many" : ""}`}
      role="img"
      aria-label={`${n} slots, nothing known yet`}
    >
      {Array.from({ length: n }, (_, slot) => (
        <div key={slot} className="strip-slot" />
      ))}
    </div>
  );
}
