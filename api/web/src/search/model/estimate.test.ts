import { expect, test } from "vitest";

import type { Search, TrialEstimate } from "../../api/types";
import { estimateOf } from "./estimate";

const made: TrialEstimate = { memory_bytes: 210_000_000, seconds: 85.2, prune_seconds: 40.4 };
const search = (estimate: TrialEstimate | null, result: object | null = null) =>
  ({ estimate, result }) as unknown as Search;

test("time and memory of a trial stand in a sentence, the parsimony pass apart", () => {
  expect(estimateOf(search(made))).toBe(
    "Estimated before it began: about 85 s and 210 MB a trial, parsimony pass about 40 s more",
  );
  expect(estimateOf(search({ ...made, seconds: 6000, prune_seconds: 0 }))).toBe(
    "Estimated before it began: about 1 h 40 min and 210 MB a trial",
  );
});

test("a result tells what was measured beside it", () => {
  const estimate = { ...made, measured: { seconds: 83.4, prune_seconds: 7.25 } };
  expect(estimateOf(search(made, { estimate }))).toMatch(/40 s more; measured 83 s, parsimony pass 7\.3 s$/);
});

test("where none was made it says why, and nothing before it is due or of an older version", () => {
  expect(estimateOf(search({ reason: "2 GPUs share a trial" }))).toBe("No estimate of a trial: 2 GPUs share a trial");
  expect(estimateOf(search(null))).toBeNull();
  expect(estimateOf(search(null, { quality: null }))).toBeNull();
});
