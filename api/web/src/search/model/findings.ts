/** What guards have found of some trials: told with a report or as an event, each once, by step. */

import type { Trial } from "../../api/types";
import type { Live } from "./live";
import { sentences } from "./told";

export interface Finding {
  trial: string;
  seed: number;
  step: number;
  words: string;
}

export function findingsOf(live: Pick<Live, "told" | "warnings">, trials: readonly Trial[]): Finding[] {
  const found = trials.flatMap(({ id, seed }) => {
    const reported = live.told.get(id)?.warnings ?? [];
    const events = live.warnings.flatMap(({ trial, step, message }) =>
      trial === id && step !== null ? sentences(step, message) : [],
    );
    const unique = new Map([...reported, ...events].map((each) => [`${each.step} ${each.words}`, each]));
    return [...unique.values()].map((each) => ({ trial: id, seed, ...each }));
  });
  return found.sort((one, other) => one.step - other.step || one.seed - other.seed);
}
