import { describe, expect, test } from "vitest";

import { boughtBy, boughtWords, natsSpan } from "./effects";
import { sureWords, withinNoise, zWords } from "./evidence";
import { frameOf } from "./frames";

const labels = ["attention", "ffn", "identity"];
const costs = { slotMs: { attention: 3, ffn: 2, identity: 0.25 }, offsetMs: 1 };
const frame = (more: object) => frameOf({ step: 9, probabilities: [], ...more });
const buys = (path: number[], nats: (number | null)[][], se: (number | null)[][] | null = null, known = costs) =>
  boughtBy(frame({ path, effect_nats: nats, effect_se: se }), labels, (label) => label, known);

describe("what a block buys", () => {
  test("is the loss without it, with its error and its milliseconds", () => {
    const [slot] = buys([0], [[0, 0.05, 0.12]], [[0, 0.01, 0.004]])!;
    expect(slot).toMatchObject({ label: "attention", ms: 2.75, tied: false });
    expect(slot!.against).toEqual({ label: "identity", nats: 0.12, se: 0.004 });
    expect(boughtWords(slot!, 0)).toBe("slot 1: attention buys 0.120 ± 0.004 nats for 2.75 ms, against identity");
  });

  test("where removal was not tried, it is told against the cheapest that was", () => {
    const [slot] = buys([0], [[0, 0.05, null]])!;
    expect(slot!.against).toEqual({ label: "ffn", nats: 0.05, se: null });
    const unknown = boughtBy(frame({ path: [2], effect_nats: [[-0.2, -0.3, 0]] }), labels, String, null);
    expect(unknown![0]).toMatchObject({ ms: null, against: { label: "ffn" } });
  });

  test("what does as well within its error leaves a slot undecided", () => {
    const se = [[0.004, null, 0], [0.004, null, 0], [0.004, null, 0]];
    const found = buys([2, 2, 2], [[0.003, null, 0], [0.03, null, 0], [-0.03, null, 0]], se)!;
    expect(found.map((each) => each.tied)).toEqual([true, false, true]);
    expect(boughtWords(found[1]!, 1)).toBe("slot 2: identity buys 0.030 ± 0.004 nats and saves 2.75 ms, against attention");
    expect(boughtWords(found[0]!, 1)).toContain("against attention; undecided");
  });

  test("where nothing was tried, alpha must lead beyond chance", () => {
    const rows = { probabilities: [[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]], null_gaps: [0.5, 0.5] };
    const none = [[0, null, null], [0, null, null]];
    const found = boughtBy(frame({ ...rows, path: [0, 0], effect_nats: none }), labels, String, costs)!;
    expect(found.map((each) => each.tied)).toEqual([true, false]);
    const noError = boughtBy(frame({ ...rows, path: [0, 0], effect_nats: [[0, null, 0.1], [0, null, 0.1]] }), labels, String, costs)!;
    expect(noError.map((each) => each.tied)).toEqual([true, false]);
  });

  test("nothing tried is nothing known, and no path is no pass", () => {
    const [slot] = buys([1], [[null, 0, null]])!;
    expect(slot).toMatchObject({ against: null, ms: null, tied: false });
    expect(boughtWords(slot!, 0)).toBe("slot 1: ffn, not weighed against anything");
    expect(boughtBy(frame({}), labels, String, costs)).toBeNull();
    expect(boughtBy(null, labels, String, costs)).toBeNull();
  });

  test("bars hold their whiskers and zero", () => {
    expect(natsSpan(buys([0], [[0, null, 0.1]], [[0, null, 0.02]])!)).toEqual([0, expect.closeTo(0.12)]);
    expect(natsSpan(buys([0], [[0, null, -0.1]], [[0, null, 0.02]])!)).toEqual([expect.closeTo(-0.12), 0]);
    expect(natsSpan([])).toEqual([0, 1e-3]);
  });
});

describe("evidence", () => {
  test.each([
    [0.71, 1.8, "p 0.710, z 1.8: within noise"],
    [0.71, -3.2, "p 0.710, z −3.2: pushed up"],
    [0.1, 2.5, "p 0.100, z 2.5: pushed down"],
    [0.1, null, "p 0.100"],
    [null, NaN, "p –"],
  ])("p %s, z %s", (p, z, words) => {
    expect(sureWords(p, z)).toBe(words);
  });

  test("what is not known is not noise", () => {
    expect([1.9, -1.9, 2, null, undefined, NaN].map(withinNoise)).toEqual([true, true, false, false, false, false]);
    expect(zWords(undefined)).toBe("");
  });
});
