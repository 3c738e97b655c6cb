/** softmax(alpha) of one trial over its steps: what the step slider goes through. */

import { keptWhenHalved, placeOfStep } from "./curve";

export interface Frame {
  step: number;
  /** A row a slot, a column a candidate; null where a value was not a number. */
  probabilities: (number | null)[][];
  /** By slot, the gap of log-probabilities that chance alone reaches. */
  nullGaps: (number | null)[] | null;
  /** Of each probability, the mean of its alpha's gradient over its standard error; null: not told. */
  z?: (number | null)[][] | null;
  /** Candidate of each slot that the parsimony pass holds; null before it. */
  path?: (number | null)[] | null;
  /** What held-out loss rises by, nats per token, when the path takes this candidate in this slot; null: not tried. */
  effects?: { nats: (number | null)[][]; se: (number | null)[][] | null } | null;
}

/** A frame as the service tells it. */
export interface FrameRow {
  step: number;
  probabilities: (number | null)[][];
  null_gaps?: (number | null)[] | null;
  z?: (number | null)[][] | null;
  path?: (number | null)[] | null;
  effect_nats?: (number | null)[][] | null;
  effect_se?: (number | null)[][] | null;
}

export const frameOf = (row: FrameRow): Frame => ({
  step: row.step,
  probabilities: row.probabilities,
  nullGaps: row.null_gaps ?? null,
  z: row.z ?? null,
  path: row.path ?? null,
  effects: row.effect_nats ? { nats: row.effect_nats, se: row.effect_se ?? null } : null,
});

/** Frames to keep of a trial: about a megabyte of JSON with its evidence, and enough steps for a slider. */
export function framesToKeep(slots: number, candidates: number): number {
  return Math.round(Math.min(240, Math.max(48, 30_000 / Math.max(1, slots * candidates))));
}

/** Every how many weight updates to ask for, so that at most `wanted` of `nSteps` come. */
export function strideFor(nSteps: number, reportEvery: number, wanted: number): number {
  const reports = nSteps / reportEvery;
  return reportEvery * Math.max(1, Math.ceil(reports / wanted));
}

export class Frames {
  steps: number[] = [];
  private list: Frame[] = [];

  constructor(private readonly wanted = 240) {}

  get length(): number {
    return this.list.length;
  }

  /** Take a frame in; false where its step is there already. */
  add(frame: Frame): boolean {
    const place = placeOfStep(this.steps, frame.step);
    if (this.steps[place] === frame.step) return false;
    this.steps.splice(place, 0, frame.step);
    this.list.splice(place, 0, frame);
    if (this.list.length > 2 * this.wanted) {
      const length = this.list.length;
      this.list = this.list.filter((_, index) => keptWhenHalved(index, length));
      this.steps = this.list.map((each) => each.step);
    }
    return true;
  }

  /** Of a trial that nobody looks at, only the newest is worth its memory. */
  keepNewest(frame: Frame): void {
    if (frame.step <= (this.steps.at(-1) ?? -1)) return;
    this.steps = [frame.step];
    this.list = [frame];
  }

  /** The newest frame that is not after `step`, else the first; null: the newest of all. */
  at(step: number | null): Frame | null {
    if (step === null) return this.list.at(-1) ?? null;
    const place = placeOfStep(this.steps, step + 1) - 1;
    return this.list[Math.max(0, place)] ?? null;
  }

  /** Probability of each candidate in a slot, over the steps: K columns. */
  historyOf(slot: number, candidates: number): (number | null)[][] {
    return Array.from({ length: candidates }, (_, index) =>
      this.list.map((frame) => frame.probabilities[slot]?.[index] ?? null),
    );
  }

  /** z of each candidate in a slot, over the steps: K columns. */
  evidenceOf(slot: number, candidates: number): (number | null)[][] {
    return Array.from({ length: candidates }, (_, index) => this.list.map((frame) => frame.z?.[slot]?.[index] ?? null));
  }

  /** Where the leader must be to be decided: the second's probability times what chance reaches, at most 1. */
  chanceOf(slot: number): (number | null)[] {
    return this.list.map((frame) => {
      const gap = frame.nullGaps?.[slot];
      const sorted = [...(frame.probabilities[slot] ?? [])].map((value) => value ?? 0).sort((a, b) => b - a);
      const second = sorted[1];
      return gap == null || second === undefined ? null : Math.min(1, second * Math.exp(gap));
    });
  }
}
