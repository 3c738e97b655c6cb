import { expect, test } from "vitest";

import { shownLabels, standing } from "./SearchRow";

const at = (step: number, n_steps: number, eta_s: number | null = null) => ({
  step,
  n_steps,
  share: step / n_steps,
  eta_s,
});
const search = (state: string, progress = at(0, 100), rest = {}) => ({
  state,
  stage: null,
  progress,
  started_at: null,
  finished_at: null,
  ...rest,
});

test.each([
  [search("queued"), ["waits for a free place", ""]],
  [search("queued", at(30, 100)), ["waits to go on", "30%"]],
  [search("running"), ["starting, 0%", ""]],
  [search("running", at(1, 1000, 90), { stage: "searching" }), ["searching, <1%", "2 min left"]],
  [search("running", at(999, 1000, 0.2), { stage: "exporting" }), ["exporting, 99%", "a moment left"]],
  [
    search("succeeded", at(90, 100), {
      started_at: "2026-11-29T12:00:00.000Z",
      finished_at: "2026-11-29T12:03:44.000Z",
    }),
    ["finished", "took 4 min"],
  ],
  [search("cancelled"), ["never started", ""]],
  [search("cancelled", at(9, 100), { stage: "searching" }), ["stopped while searching", "9%"]],
])("%# says what it stands at", (given, expected) => expect(standing(given)).toEqual(expected));

test("an undecided slot shows no block while a search is under way, and the cheapest one once it was derived", () => {
  const strip = { labels: ["ffn", "attention"], undecided: [0], step: 10 };
  expect(shownLabels({ ...strip, source: "leading" })).toEqual(["", "attention"]);
  expect(shownLabels({ ...strip, source: "derived" })).toEqual(["ffn", "attention"]);
});
