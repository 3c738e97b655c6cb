/** The scalar reports of one trial as columns, ready for plotting: sorted by step, each step once, bounded in length. */

export const CURVE_NAMES = [
  "train_loss",
  "val_loss",
  "val_loss_soft",
  "val_loss_argmax",
  "val_loss_sampled",
  "tau",
  "expected_ms",
  "entropy",
  "identity_share",
  "alpha_velocity",
  "dual",
  "tokens_per_s",
] as const;

export type CurveName = (typeof CURVE_NAMES)[number];
export type CurveRow = { step: number } & Partial<Record<CurveName, number | null>>;

/** Points a curve keeps: more than a plot has pixels, and small enough to redraw at each report. */
export const CURVE_POINTS = 2000;

/** Where `step` is, or would be, among sorted steps. */
export function placeOfStep(steps: readonly number[], step: number): number {
  let low = 0;
  let high = steps.length;
  if (high > 0 && (steps[high - 1] ?? 0) < step) return high; // the common case: a report follows the newest
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] ?? 0) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether an entry stays when a list is halved: the first, the last, and every second one between. */
export const keptWhenHalved = (index: number, length: number) => index % 2 === 0 || index === length - 1;

export class Curve {
  steps: number[] = [];
  values: Record<CurveName, (number | null)[]>;

  constructor(private readonly points = CURVE_POINTS) {
    this.values = Object.fromEntries(CURVE_NAMES.map((name) => [name, []])) as unknown as Curve["values"];
  }

  /** Take a report in; false where its step is there already. */
  add(row: CurveRow): boolean {
    const place = placeOfStep(this.steps, row.step);
    if (this.steps[place] === row.step) return false;
    this.steps.splice(place, 0, row.step);
    for (const name of CURVE_NAMES) this.values[name].splice(place, 0, row[name] ?? null);
    if (this.steps.length > 2 * this.points) this.halve();
    return true;
  }

  /** The newest value of a curve; null where it has none yet. */
  last(name: CurveName): number | null {
    const values = this.values[name];
    for (let at = values.length - 1; at >= 0; at--) if (values[at] != null) return values[at] as number;
    return null;
  }

  /** Whether a curve has any value: columns that a kind of trial never fills are not offered. */
  has(name: CurveName): boolean {
    return this.values[name].some((value) => value !== null);
  }

  private halve(): void {
    const length = this.steps.length;
    const keep = <T>(list: T[]) => list.filter((_, index) => keptWhenHalved(index, length));
    this.steps = keep(this.steps);
    for (const name of CURVE_NAMES) this.values[name] = keep(this.values[name]);
  }
}

/** Several curves on one axis of steps, as uPlot takes them: steps, then the values of each, null where it has none. */
export function aligned(
  curves: readonly { steps: readonly number[]; values: readonly (number | null)[] }[],
): [number[], ...(number | null)[][]] {
  const first = curves[0];
  if (first && curves.every((each) => sameSteps(each.steps, first.steps))) {
    return [[...first.steps], ...curves.map((each) => [...each.values])];
  }
  const steps = [...new Set(curves.flatMap((each) => each.steps))].sort((one, other) => one - other);
  const at = new Map(steps.map((step, index) => [step, index]));
  const columns = curves.map((each) => {
    const column = new Array<number | null>(steps.length).fill(null);
    each.steps.forEach((step, index) => {
      column[at.get(step) as number] = each.values[index] ?? null;
    });
    return column;
  });
  return [steps, ...columns];
}

function sameSteps(one: readonly number[], other: readonly number[]): boolean {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let at = one.length - 1; at >= 0; at--) if (one[at] !== other[at]) return false;
  return true;
}
