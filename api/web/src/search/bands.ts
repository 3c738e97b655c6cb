/** What is shown of a seed: its frame at the step, and what follows from it. */

import { fixed } from "../ui/format";
import { type Bought, boughtWords } from "./model/effects";
import { zWords } from "./model/evidence";
import type { Frame } from "./model/frames";
import type { SlotState } from "./model/leading";

export interface SeedBand {
  seed: number;
  frame: Frame | null;
}

export type Seen = SeedBand & { states: SlotState[]; bought: Bought[] | null };

/** Height of the axis and of a band's name, with the gap under it. */
export const AXIS = 28;

/** A slot in words, for those who hear the page. */
export function said(slot: number, bands: readonly Seen[], labels: readonly string[]): string {
  const parts = bands.map(({ seed, frame, states, bought }) => {
    const state = states[slot];
    if (!frame || !state) return `seed ${seed}: nothing yet`;
    const name = state.undecided ? "undecided" : `${labels[state.leader]} leads`;
    const row = labels.map((label, index) =>
      [`${label} ${fixed(frame.probabilities[slot]?.[index], 2)}`, zWords(frame.z?.[slot]?.[index])]
        .filter(Boolean)
        .join(" "),
    );
    const buys = bought?.[slot];
    return `seed ${seed}: ${name}; ${row.join(", ")}${buys ? `; ${boughtWords(buys, slot)}` : ""}`;
  });
  return `slot ${slot + 1}. ${parts.join(". ")}`;
}
