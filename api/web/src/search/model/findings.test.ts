import { expect, test } from "vitest";

import type { Trial } from "../../api/types";
import { findingsOf } from "./findings";
import { Told } from "./told";

const trials = [{ id: "b", seed: 1 }, { id: "a", seed: 0 }] as Trial[];

test("what was told with a report and as an event stands once, by step", () => {
  const told = new Told();
  told.add({ step: 50, warning: "identity takes over\ntwo at once" });
  const event = (step: number | null, message: string, trial: string | null) => ({ number: 1, at: "", message, trial, step });
  const found = findingsOf(
    {
      told: new Map([["a", told]]),
      warnings: [
        event(50, "identity takes over", "a"),
        event(20, "alpha stands still", "b"),
        event(null, "of the whole search", null),
        event(9, "of another sample", "c"),
      ],
    },
    trials,
  );
  expect(found.map(({ step, seed, words }) => [step, seed, words])).toEqual([
    [20, 1, "alpha stands still"],
    [50, 0, "identity takes over"],
    [50, 0, "two at once"],
  ]);
});
