import { expect, test } from "vitest";

import { bytes, count, duration, fixed, relative, signed } from "./format";

test.each([
  [0.4, "0 s"],
  [59.4, "59 s"],
  [59.6, "1 min"],
  [3_540, "59 min"],
  [3_599, "1 h"],
  [12_000, "3 h 20 min"],
  [106_440, "30 h"],
  [187_200, "2 d 4 h"],
  [172_800, "2 d"],
])("%d seconds are %s", (seconds, expected) => expect(duration(seconds)).toBe(expected));

const now = new Date(2026, 10, 29, 12, 0, 0);
const before = (seconds: number) => new Date(now.getTime() - seconds * 1000);

test.each([
  [-30, "just now"], // clocks differ
  [9, "just now"],
  [45, "45 s ago"],
  [61, "1 min ago"],
  [7_300, "2 h ago"],
  [86_500, "yesterday"],
  [86_400 * 3, "3 days ago"],
])("%d seconds before now is %s", (seconds, expected) => expect(relative(before(seconds), now)).toBe(expected));

test("an old moment has its date, and its year where that is another", () => {
  expect(relative(before(86_400 * 30), now)).not.toContain("2026");
  expect(relative(before(86_400 * 400), now)).toContain("2025");
});

test.each([
  [2.3804, 3, "2.380"],
  [-0.05, 2, "−0.05"],
  [null, 2, "–"],
  [Number.NaN, 2, "–"],
])("%s with %d decimals is %s", (value, decimals, expected) => expect(fixed(value, decimals)).toBe(expected));

test("a sign is written where it says something", () => {
  expect([signed(0.05, 2), signed(-0.05, 2), signed(0, 2), signed(null, 2)]).toEqual(["+0.05", "−0.05", "0.00", "–"]);
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1.0 kB"],
  [9_960, "10 kB"],
  [999_700, "1.0 MB"],
  [3_000_000_000, "3.0 GB"],
  [null, "–"],
])("%s bytes are %s", (value, expected) => expect(bytes(value)).toBe(expected));

test("thousands are set apart", () => expect(count(1234567)).toBe("1,234,567"));
