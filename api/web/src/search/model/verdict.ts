/** The words that the figures of a result allow. */

import type { Result } from "../../api/types";

export type Word = "better" | "worse" | "faster" | "slower" | "within" | "over" | "cannot tell";

/** A latency ratio says something only beyond its interval and beyond what the parent strays from its own twin. */
export function latencyWord(latency: NonNullable<Result["latency"]>): Word {
  const { ratio, low, high, repeatability } = latency;
  if (Math.abs(ratio - 1) <= repeatability) return "cannot tell";
  return high < 1 ? "faster" : low > 1 ? "slower" : "cannot tell";
}

export const MEANING: Record<Word, string> = {
  better: "better than the parent: the whole interval lies below zero",
  worse: "worse than the parent: the whole interval lies above zero",
  faster: "faster than the parent: the whole interval lies below 1, by more than the measurement repeats",
  slower: "slower than the parent: the whole interval lies above 1, by more than the measurement repeats",
  within: "the bound holds: of what is timed, for the whole interval",
  over: "the bound is missed: of what is timed, by the whole interval",
  "cannot tell": "the interval, or what the measurement repeats to, holds both",
};

/** Ends of a plot's axis that hold the interval and the reference, with some room. */
export function spanOf(values: readonly number[]): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low || Math.abs(high) || 1) * 0.12;
  return [low - room, high + room];
}
