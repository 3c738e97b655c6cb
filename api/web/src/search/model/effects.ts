/** What the block of each slot buys: the rise of held-out loss without it, and the milliseconds that it takes. */

import { fixed } from "../../ui/format";
import type { Costs } from "./cost";
import { milliseconds } from "./format";
import type { Frame } from "./frames";
import { slotStates } from "./leading";

export interface Tried {
  label: string;
  /** Nats per token that the loss rises by when the slot takes it; below 0 it falls. */
  nats: number;
  /** Standard error of `nats`; null where none was told. */
  se: number | null;
}

export interface Bought {
  /** What stands in the slot. */
  label: string;
  /** What it was weighed against: its removal where that was tried, else the cheapest; null: nothing was tried. */
  against: Tried | null;
  /** Milliseconds that it takes beyond what it was weighed against; null while costs are not known. */
  ms: number | null;
  /** Whether something that was tried does as well within its error; where nothing was, whether alpha leads by chance. */
  tied: boolean;
  tried: readonly Tried[];
}

/** What the figures refer to: the pass keeps those of a slot while it goes on with the others. */
export const REFERS =
  "Each comparison was made with the other slots as they stood then; an edit of another slot that was kept later is not in it.";

/** Whether it does as well within its error, as the service has it (nas/leading.py). */
export const ties = ({ nats, se }: Tried): boolean => se !== null && nats - se <= 0;

/** One entry a slot; null where the frame is of no parsimony pass. */
export function boughtBy(
  frame: Frame | null,
  labels: readonly string[],
  familyOf: (label: string) => string,
  costs: Costs | null,
): Bought[] | null {
  const { path, effects } = frame ?? {};
  if (!frame || !path || !effects) return null;
  const states = slotStates(frame);
  return path.map((at, slot) => {
    const label = labels[at ?? -1] ?? "";
    const tried = labels.flatMap((other, index): Tried[] => {
      const nats = effects.nats[slot]?.[index];
      return index === at || nats == null ? [] : [{ label: other, nats, se: effects.se?.[slot]?.[index] ?? null }];
    });
    const cost = (each: Tried) => costs?.slotMs[each.label] ?? 0;
    const cheapest = [...tried].sort((one, other) => cost(one) - cost(other) || one.nats - other.nats);
    const against = tried.find((each) => familyOf(each.label) === "identity") ?? cheapest[0] ?? null;
    const own = costs?.slotMs[label];
    const compared = tried.some(({ se }) => se !== null); // without an error nothing is weighed
    return {
      label,
      against,
      ms: against && costs && own !== undefined ? own - cost(against) : null,
      tied: compared ? tried.some(ties) : (states[slot]?.undecided ?? false),
      tried,
    };
  });
}

/** Ends of the bars' axis: whole whiskers, and 0. */
export function natsSpan(bought: readonly Bought[]): [number, number] {
  const ends = bought.flatMap(({ against }) =>
    against ? [against.nats - (against.se ?? 0), against.nats + (against.se ?? 0)] : [],
  );
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  return high > low ? [low, high] : [0, 1e-3];
}

/** "slot 3: attention buys 0.120 ± 0.004 nats for 0.310 ms, against identity". */
export function boughtWords({ label, against, ms, tied }: Bought, slot: number): string {
  const at = `slot ${slot + 1}: `;
  if (!against) return `${at}${label}, not weighed against anything`;
  const error = against.se === null ? "" : ` ± ${fixed(against.se, 3)}`;
  const cost = ms === null ? "" : ms < 0 ? ` and saves ${milliseconds(-ms)}` : ` for ${milliseconds(ms)}`;
  return `${at}${label} buys ${fixed(against.nats, 3)}${error} nats${cost}, against ${against.label}${tied ? "; undecided" : ""}`;
}
