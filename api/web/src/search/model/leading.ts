/** Who leads in each slot, and where it leads by no more than chance: as the command line shows it (api/show.py). */

import type { Frame } from "./frames";

export interface SlotState {
  /** Index of the most probable candidate; the first of a tie, which `undecided` then says. */
  leader: number;
  probability: number;
  /** Gap between the two largest log-probabilities; Infinity where the second is 0. */
  gap: number;
  /** The gap that chance alone reaches. */
  chance: number;
  undecided: boolean;
}

export function slotState(row: readonly (number | null)[], nullGap: number | null | undefined): SlotState {
  let leader = 0;
  let first = -1;
  let second = -1;
  row.forEach((value, index) => {
    const probability = value ?? -1;
    if (probability > first) {
      second = first;
      first = probability;
      leader = index;
    } else if (probability > second) second = probability;
  });
  const chance = nullGap ?? 0;
  if (row.length < 2) return { leader, probability: Math.max(0, first), gap: Infinity, chance, undecided: false };
  const gap = first <= 0 ? 0 : second <= 0 ? Infinity : Math.log(first / second);
  return { leader, probability: Math.max(0, first), gap, chance, undecided: gap <= chance };
}

const known = new WeakMap<Frame, SlotState[]>();

/** Of each slot. The same frame has the same answer, so that what is drawn from it need not be drawn again. */
export function slotStates(frame: Frame): SlotState[] {
  let found = known.get(frame);
  if (!found)
    known.set(frame, (found = frame.probabilities.map((row, slot) => slotState(row, frame.nullGaps?.[slot]))));
  return found;
}

/** "5 of 6 slots decided", of a frame's states. */
export function decidedCount(states: readonly SlotState[]): number {
  return states.reduce((count, each) => count + (each.undecided ? 0 : 1), 0);
}
