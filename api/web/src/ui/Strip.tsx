/** An architecture as a row of slots, in the families' colours and letters; undecided slots are hatched. */

import { memo } from "react";

import type { Look } from "../blocks";

/** Beyond these, a strip that shares a line with text shows colours alone; the letters are in each slot's title. */
const LETTERS_FIT = 48;

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
  const words = labels.map((label, slot) => (open.has(slot) ? `${label} (undecided)` : label)).join(", ");
  const many = labels.length > LETTERS_FIT;
  return (
    <div
      className={`strip strip-${size} ${fill ? "strip-fill" : ""} ${many ? "strip-many" : ""}`}
      role="img"
      aria-label={`${title}: ${words}`}
    >
      {labels.map((label, slot) => {
        const { letter, colour, ink } = look(label);
        return (
          <div
            key={slot}
            className={open.has(slot) ? "strip-slot strip-undecided" : "strip-slot"}
            style={{ "--colour": colour, "--on": ink } as React.CSSProperties}
            title={`slot ${slot + 1}: ${label}${open.has(slot) ? ", undecided" : ""}`}
          >
            <span>{letter}</span>
          </div>
        );
      })}
    </div>
  );
});
