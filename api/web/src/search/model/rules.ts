/** What a statement of a rule says beside its words. */

export interface Said {
  statement: string;
  verdict: string;
  reason: string;
  kind?: string;
  n_seeds?: number;
  range_low?: number | null;
  range_high?: number | null;
  by_seed?: readonly (number | null)[];
}

const FROM = 6; // seeds: as the report and the terminal have it (nas/report/ratio_range.py)

/** "2 : 1 to 4 : 1", "2 : 1 to none" where a seed has no such block; null of few seeds and of other kinds. */
export function ratioRange({ kind, n_seeds = 0, range_low, range_high, by_seed = [] }: Said): string | null {
  if (kind !== "ratio") return null;
  if (range_low != null && range_high != null) return `${short(range_low)} : 1 to ${short(range_high)} : 1`;
  const known = by_seed.filter((each) => each !== null);
  if (known.length === 0 || known.length === by_seed.length || n_seeds < FROM) return null;
  return `${short(Math.min(...known))} : 1 to none`;
}

/** Three digits that count, without zeros at the end. */
function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}
