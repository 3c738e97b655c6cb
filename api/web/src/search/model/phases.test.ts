import { describe, expect, test } from "vitest";

import { countedPhases, type Phase, phaseAt, planned, spansOf } from "./phases";
import { Told } from "./told";

const request = { method: { n_steps: 100, warmup_share: 0.3, settle_share: 0.1, prune_steps: 5 } } as never;
const plan = planned(request, 6);
/** By their last steps; each begins 5 behind the end of the one before. */
const ends = (told: Partial<Record<Phase, number>>) => {
  let before = -5;
  const steps = Object.entries(told).map(([phase, last]) => {
    const first = before + 5;
    before = last;
    return [phase as Phase, { first, last }] as const;
  });
  return new Map(steps);
};

describe("the phases of a search", () => {
  test("as the request has them", () => {
    expect(plan.map(({ phase, from, to }) => [phase, from, to])).toEqual([
      ["warm-up", 0, 30],
      ["search", 30, 90],
      ["settle", 90, 100],
      ["prune", 100, 130],
    ]);
    const older = planned({ method: { n_steps: 100, warmup_share: 0 } } as never, 6);
    expect(older.map(({ phase }) => phase)).toEqual(["search"]);
    expect(planned({}, 6)).toEqual([]);
    expect(planned(request, 6, { "/method/n_steps": 200 })[2]).toEqual({ phase: "settle", from: 180, to: 200 });
  });

  test("a prune phase that takes longer than was planned grows by whole lengths", () => {
    const pruning = (step: number) =>
      spansOf(ends({ "warm-up": 30, search: 90, settle: 100, prune: step }), plan, false).at(-1)?.to;
    expect([110, 130, 131, 161].map(pruning)).toEqual([130, 130, 160, 190]);
  });

  test("a running one ends where it is planned to, or later", () => {
    expect(spansOf(ends({ "warm-up": 30, search: 40 }), plan, false)).toEqual(plan);
    expect(spansOf(ends({ "warm-up": 30, search: 90 }), plan, false)[1]).toEqual({ phase: "search", from: 30, to: 90 });
  });

  test("one that ended between two reports ended where it was to", () => {
    const found = spansOf(ends({ "warm-up": 28, search: 88, settle: 98 }), plan, false);
    expect(found.map(({ to }) => to)).toEqual([30, 90, 100, 130]);
  });

  test("a search that was stable early is followed by what is left of the plan", () => {
    expect(spansOf(ends({ "warm-up": 30, search: 50, settle: 52 }), plan, false)).toEqual([
      { phase: "warm-up", from: 0, to: 30 },
      { phase: "search", from: 30, to: 50 },
      { phase: "settle", from: 50, to: 60 },
      { phase: "prune", from: 60, to: 90 },
    ]);
  });

  test("nothing is ahead of one that has ended", () => {
    expect(spansOf(ends({ "warm-up": 30, search: 40 }), plan, true).at(-1)).toEqual({ phase: "search", from: 30, to: 40 });
    expect(spansOf(ends({ "warm-up": 30, search: 90, settle: 100, prune: 115 }), plan, true).at(-1)?.to).toBe(115);
  });

  test("one that tells no phase has the planned ones", () => {
    expect(spansOf(new Map(), plan, false)).toEqual(plan);
  });

  test("a step is in the phase that it ended", () => {
    expect([0, 30, 31, 130, 131].map((step) => phaseAt(plan, step))).toEqual(["warm-up", "warm-up", "search", "prune", null]);
  });

  test("are counted over the trials", () => {
    expect(countedPhases(["search", "warm-up", "search", null])).toBe("1 in warm-up, 2 in search");
    expect(countedPhases([null])).toBe("");
  });
});

describe("what a trial tells", () => {
  test("its newest row has its phase, in whatever order rows come", () => {
    const told = new Told();
    told.add({ step: 50, phase: "search" });
    told.add({ step: 10, phase: "warm-up" });
    told.add({ step: 40, phase: "search" });
    expect(told.phase).toBe("search");
    expect(told.steps.get("search")).toEqual({ first: 40, last: 50 });
  });

  test("a phase that this page does not know is none", () => {
    const told = new Told();
    told.add({ step: 5, phase: "anneal" });
    expect([told.phase, told.steps.size]).toEqual([null, 0]);
  });

  test("a warning stands once, at its step", () => {
    const told = new Told();
    for (const step of [20, 10, 20]) told.add({ step, warning: `w${step}` });
    told.add({ step: 30, warning: null });
    expect(told.warnings).toEqual([
      { step: 10, words: "w10" },
      { step: 20, words: "w20" },
    ]);
  });
});
