import { expect, it } from "vitest";

import { ratioRange, type Said } from "./rules";

const said = (changes: Partial<Said>): Said => ({
  statement: "all blocks : attention blocks 2.5 : 1",
  verdict: "suggested",
  reason: "",
  kind: "ratio",
  n_seeds: 6,
  range_low: 2,
  range_high: 3.3333,
  by_seed: [2, 2, 3, 3, 3.3333, 2.5],
  ...changes,
});

it.each([
  [said({}), "2 : 1 to 3.33 : 1"],
  [said({ range_low: null, range_high: null, by_seed: [2, null, 3, 4, 2, 2] }), "2 : 1 to none"],
  [said({ range_low: null, range_high: null }), null],
  [said({ range_low: null, range_high: null, by_seed: [2, null], n_seeds: 5 }), null],
  [said({ kind: "order" }), null],
  [{ statement: "of an older version", verdict: "suggested", reason: "" }, null],
])("the range of %o over the seeds is %s", (statement, words) => expect(ratioRange(statement)).toBe(words));
