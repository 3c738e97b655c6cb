import { describe, expect, test } from "vitest";

import { columnWidth, isNumbered, numberEvery, slotAt } from "./columns";
import { boundWords, budgetMs, costsOf, parentOf, predictMs } from "./cost";
import { aligned, Curve, placeOfStep } from "./curve";
import { counted, milliseconds, percent, scientific, slotList } from "./format";
import { Frames, framesToKeep, strideFor } from "./frames";
import { decidedCount, slotState, slotStates } from "./leading";
import { stepsOf } from "./stages";
import { latencyWord, spanOf } from "./verdict";
import { queryOf, viewOf } from "./view";

describe("curve", () => {
  test("steps stay sorted and each stands once, in whatever order they come", () => {
    const curve = new Curve();
    for (const step of [50, 0, 25, 50, 75]) curve.add({ step, train_loss: step === 0 ? null : step });
    expect(curve.steps).toEqual([0, 25, 50, 75]);
    expect(curve.values.train_loss).toEqual([null, 25, 50, 75]);
    expect(curve.last("train_loss")).toBe(75);
    expect(curve.last("tau")).toBeNull();
    expect(curve.has("tau")).toBe(false);
  });

  test("a long one is halved and keeps its ends", () => {
    const curve = new Curve(10);
    for (let step = 0; step <= 20; step++) curve.add({ step, tau: 1 });
    expect(curve.steps.length).toBe(11);
    expect(curve.steps[0]).toBe(0);
    expect(curve.steps.at(-1)).toBe(20);
  });

  test("the place of a step", () => {
    expect([0, 5, 10, 15].map((step) => placeOfStep([5, 10], step))).toEqual([0, 0, 1, 2]);
  });

  test("curves of different steps share one axis", () => {
    const one = { steps: [0, 10], values: [1, 2] };
    const other = { steps: [0, 5], values: [3, null] };
    expect(aligned([one, other])).toEqual([
      [0, 5, 10],
      [1, null, 2],
      [3, null, null],
    ]);
    expect(aligned([one, one])[0]).toEqual([0, 10]);
    expect(aligned([])).toEqual([[]]);
  });
});

describe("frames", () => {
  const frame = (step: number) => ({ step, probabilities: [[0.6, 0.3, 0.1]], nullGaps: [0.5] });

  test("a step shows the newest frame that is not after it", () => {
    const frames = new Frames();
    for (const step of [100, 0, 50]) frames.add(frame(step));
    expect(frames.at(null)?.step).toBe(100);
    expect(frames.at(99)?.step).toBe(50);
    expect(frames.at(100)?.step).toBe(100);
    expect(frames.at(-5)?.step).toBe(0);
    expect(new Frames().at(3)).toBeNull();
  });

  test("history is a column a candidate, and chance is where the leader would be decided", () => {
    const frames = new Frames();
    frames.add(frame(0));
    expect(frames.historyOf(0, 3)).toEqual([[0.6], [0.3], [0.1]]);
    expect(frames.chanceOf(0)[0]).toBeCloseTo(0.3 * Math.exp(0.5), 12);
  });

  test("how much is kept and asked for is bounded", () => {
    expect(framesToKeep(6, 5)).toBe(240);
    expect(framesToKeep(48, 8)).toBe(78);
    expect(framesToKeep(512, 32)).toBe(48);
    expect(strideFor(1200, 25, 240)).toBe(25);
    expect(strideFor(1_000_000, 10, 240)).toBe(4170);
    expect(1_000_000 / strideFor(1_000_000, 10, 240)).toBeLessThanOrEqual(240);
  });
});

describe("leading, as api/show.py", () => {
  test.each([
    ["clear", [0.7, 0.2, 0.1], 0.5, 0, false],
    ["within chance", [0.5, 0.4, 0.1], 0.5, 0, true],
    ["a tie", [0.2, 0.2, 0.2], 0, 0, true],
    ["a sure one", [0, 1, 0], 3, 1, false],
    ["a hole", [null, 0.6, 0.4], 0.1, 1, false],
    ["nothing known", [null, null], 0, 0, true],
  ])("%s", (_, row, gap, leader, undecided) => {
    expect(slotState(row, gap)).toMatchObject({ leader, undecided });
  });

  test("one candidate is never in doubt", () => {
    expect(slotState([1], 0.3).undecided).toBe(false);
  });

  test("unknown chance is 0", () => {
    const states = slotStates({
      step: 0,
      probabilities: [
        [0.6, 0.4],
        [0.5, 0.5],
      ],
      nullGaps: null,
    });
    expect(states.map((each) => each.undecided)).toEqual([false, true]);
    expect(decidedCount(states)).toBe(1);
  });
});

describe("columns", () => {
  test.each([
    [660, 1, 140],
    [660, 6, 110],
    [560, 24, 23],
    [1020, 96, 10],
    [280, 96, 10],
  ])("%i px for %i slots", (available, slots, width) => {
    expect(columnWidth(available, slots)).toBe(width);
  });

  test("numbers stay apart", () => {
    expect(numberEvery(92, 6)).toBe(1);
    expect(numberEvery(10, 96)).toBe(5);
    expect(numberEvery(13, 512)).toBe(5);
    expect(isNumbered(0, 5)).toBe(true);
    expect(isNumbered(1, 5)).toBe(false);
    expect(isNumbered(4, 5)).toBe(true);
  });

  test("the slot under the pointer", () => {
    expect([-1, 0, 12, 13, 77, 78].map((x) => slotAt(x, 13, 6))).toEqual([null, 0, 0, 1, 5, null]);
  });
});

describe("view in the URL", () => {
  test("what is written is read back", () => {
    const view = { slot: 3, seed: 1, folded: false, sample: 2, step: 400, curve: "tau", loss: "retrain" } as const;
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(queryOf(view))) if (value !== null) query.set(key, String(value));
    expect(query.toString()).toBe("slot=4&seed=1&folded=0&sample=2&step=400&curve=tau&loss=retrain");
    expect(viewOf(query, 6)).toEqual(view);
  });

  test("a plain look has a plain address, and nonsense is a plain look", () => {
    const plain = viewOf(new URLSearchParams("slot=99&seed=-1&step=x&curve=moon&loss=me"), 6);
    expect(plain).toEqual(viewOf(new URLSearchParams(), 6));
    expect(Object.values(queryOf(plain)).every((value) => value === null)).toBe(true);
  });
});

describe("cost", () => {
  const table = {
    offset_ms: 0.5,
    scale: 2,
    entries: {
      a: { block: "attention", options: { n_heads: null }, median_ms: 1 },
      b: { block: "ffn", options: { ratio: 4 }, median_ms: 1.5 },
      c: { block: "ffn", options: { ratio: 2 }, median_ms: 0.75 },
    },
  };
  const candidates = [
    { label: "wide", block: "ffn", options: { ratio: 4 } },
    { label: "attention", block: "attention", options: { n_heads: null } },
  ];

  test("a label costs what its block with its options was measured at", () => {
    const costs = costsOf(table, candidates);
    expect(costs?.slotMs).toEqual({ wide: 3, attention: 2 });
    expect(predictMs(costs!, ["attention", "wide"])).toBe(5.5);
  });

  test("what was not measured, or at two shapes, is not guessed", () => {
    expect(costsOf(table, [{ label: "sgu", block: "sgu", options: {} }])).toBeNull();
    const twice = { ...table, entries: { ...table.entries, d: { block: "ffn", options: { ratio: 4 }, median_ms: 9 } } };
    expect(costsOf(twice, candidates)).toBeNull();
  });

  test("the parent is interleaved, by family", () => {
    const family = (label: string) => (label === "wide" ? "ffn" : label);
    expect(parentOf(["wide", "attention"], family, 3)).toEqual(["attention", "wide", "attention"]);
    expect(parentOf(["wide"], family, 3)).toBeNull();
  });

  test("bounds are told in words, whatever their kind", () => {
    expect(boundWords({ latency: { ms: 4 }, cache_bytes: { ratio_to_parent: 0.5 } } as never)).toEqual([
      "at most 4 ms",
      "at most 0.5 of the parent's cache",
    ]);
    expect(boundWords({ parameters: { at_most: 90000 }, latency: null } as never)).toEqual(["at most 90,000 weights"]);
    expect(boundWords(undefined)).toEqual(["no bound on its cost"]);
  });

  test("a budget is in milliseconds or against the parent", () => {
    const with_ = (latency: object | null) => ({ budget: { latency } }) as never;
    expect(budgetMs(with_({ ms: 4, ratio_to_parent: null }), null)).toBe(4);
    expect(budgetMs(with_({ ms: null, ratio_to_parent: 0.5 }), 10)).toBe(5);
    expect(budgetMs(with_({ ms: null, ratio_to_parent: 0.5 }), null)).toBeNull();
    expect(budgetMs(with_(null), 10)).toBeNull();
  });
});

describe("words", () => {
  const latency = { ratio: 0.88, low: 0.85, high: 0.91, repeatability: 0.014, derived_ms: 1, parent_ms: 1 };
  test.each([
    [latency, "faster"],
    [{ ...latency, ratio: 1.1, low: 1.05, high: 1.2 }, "slower"],
    [{ ...latency, high: 1.01 }, "cannot tell"],
    [{ ...latency, repeatability: 0.2 }, "cannot tell"],
  ])("%o", (found, word) => {
    expect(latencyWord(found)).toBe(word);
  });

  test("a span holds its values", () => {
    expect(spanOf([0, 1])).toEqual([-0.12, 1.12]);
    const [low, high] = spanOf([2, 2]);
    expect(low).toBeLessThan(2);
    expect(high).toBeGreaterThan(2);
  });

  test("numbers", () => {
    expect([0.8801, 8.84, 12.36, 103.2, null].map(milliseconds)).toEqual([
      "0.880 ms",
      "8.84 ms",
      "12.4 ms",
      "103 ms",
      "–",
    ]);
    expect([0, 0.999, 1].map(percent)).toEqual(["0 %", "99 %", "100 %"]);
    expect([scientific(0), scientific(1.23e-6), scientific(4e5)]).toEqual(["0", "1.2 × 10⁻⁶", "4.0 × 10⁵"]);
    expect([counted(1, "seed"), counted(1200, "step")]).toEqual(["1 seed", "1,200 steps"]);
    expect([slotList([3, 4, 5, 0]), slotList([2])]).toEqual(["slots 4–6, 1", "slot 3"]);
  });
});

describe("stages", () => {
  const live = (search: object, more: object = {}) =>
    ({
      search: { started_at: "x", stage: null, result: null, ...search },
      trials: [],
      architectures: [],
      artifacts: [],
      ...more,
    }) as never;
  const states = (of: never) => stepsOf(of).map((each) => each.state);

  test("a running search is at its stage", () => {
    expect(states(live({ state: "running", stage: "deriving" }))).toEqual(["done", "done", "now", "ahead", "ahead"]);
  });

  test("a queued one that never began has all before it", () => {
    expect(states(live({ state: "queued", started_at: null }))).toEqual(Array(5).fill("ahead"));
  });

  test("where a failed one stopped is told by what it left", () => {
    const trials = [{ kind: "search" }];
    expect(states(live({ state: "failed" }))).toEqual(["stopped", "ahead", "ahead", "ahead", "ahead"]);
    expect(states(live({ state: "failed" }, { trials }))[1]).toBe("stopped");
  });

  test("a succeeded one has done all, in known times", () => {
    const steps = stepsOf(live({ state: "succeeded", result: { seconds: { searching: 92 } } }));
    expect(steps.every((each) => each.state === "done")).toBe(true);
    expect(steps[1]?.seconds).toBe(92);
  });

  test("a stage of a newer service is shown", () => {
    expect(stepsOf(live({ state: "running", stage: "diagnosing" })).map((each) => each.name)[4]).toBe("diagnosing");
  });
});
