/** What one trial tells in words: the phase it is in, and what its guards have found, each at its step. */

import { placeOfStep } from "./curve";
import { type Phase, phaseOf, type Steps } from "./phases";

export interface Found {
  step: number;
  words: string;
}

export interface TellingRow {
  step: number;
  phase?: string | null;
  warning?: string | null;
}

const KEPT = 100; // of a trial; a guard that speaks at each report has said it by then

export class Told {
  /** The first and the last step told of each phase. */
  readonly steps = new Map<Phase, Steps>();
  readonly warnings: Found[] = [];
  private newest = -1;
  private newestPhase: Phase | null = null;

  /** The phase of the newest row; null before the first, and of a retraining. */
  get phase(): Phase | null {
    return this.newestPhase;
  }

  add({ step, phase, warning }: TellingRow): void {
    const known = phaseOf(phase);
    if (known) {
      const { first, last } = this.steps.get(known) ?? { first: step, last: step };
      this.steps.set(known, { first: Math.min(first, step), last: Math.max(last, step) });
    }
    if (step >= this.newest) [this.newest, this.newestPhase] = [step, known];
    if (!warning || this.warnings.some((each) => each.step === step)) return;
    const place = placeOfStep(
      this.warnings.map((each) => each.step),
      step,
    );
    this.warnings.splice(place, 0, ...sentences(step, warning));
    if (this.warnings.length > KEPT) this.warnings.shift();
  }
}

/** A report's warning, a line a guard. */
export const sentences = (step: number, warning: string): Found[] =>
  warning.split("\n").flatMap((words) => (words.trim() ? [{ step, words }] : []));
