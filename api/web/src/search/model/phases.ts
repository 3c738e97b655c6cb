/** The phases of a search trial over its steps: as planned, and as told. */

import type { SearchRequest } from "../../api/types";

export const PHASES = ["warm-up", "search", "settle", "prune"] as const;
export type Phase = (typeof PHASES)[number];

export const PHASE_WORDS: Record<Phase, string> = {
  "warm-up": "uniform paths, alpha is frozen",
  search: "weights and alpha in turn",
  settle: "alpha is frozen, candidates that ran less catch up",
  prune: "each block is weighed against cheaper ones on held-out data",
};

/** Steps in which a trial is in one phase: behind `from`, up to `to`. */
export interface Span {
  phase: Phase;
  from: number;
  to: number;
}

export const phaseOf = (text: unknown): Phase | null => PHASES.find((each) => each === text) ?? null;

export interface Steps {
  first: number;
  last: number;
}

interface Method {
  n_steps?: number;
  warmup_share?: number;
  settle_share?: number;
  prune_steps?: number;
}

/**
 * The phases as the request has them, those of no steps left out; one of an older service has no settle and no prune.
 *
 * How long the prune phase is, nobody knows before: one comparison a slot is taken for a beginning.
 *
 * @param params what a sample varies, by JSON pointer.
 */
export function planned(request: Partial<SearchRequest>, slots: number, params: Record<string, unknown> = {}): Span[] {
  const varied = Object.entries(params).map(([pointer, value]) => [pointer.replace("/method/", ""), value]);
  const method: Method = { ...request.method, ...(Object.fromEntries(varied) as Method) };
  const { n_steps = 0, warmup_share = 0, settle_share = 0, prune_steps = 0 } = method;
  const warmup = Math.round(warmup_share * n_steps);
  const settle = n_steps - Math.round(settle_share * n_steps);
  const ends = [warmup, settle, n_steps, n_steps + slots * prune_steps];
  return PHASES.map((phase, at) => ({ phase, from: at ? (ends[at - 1] ?? 0) : 0, to: ends[at] ?? 0 })).filter(
    ({ from, to }) => to > from,
  );
}

/**
 * The phases of one trial: told ones end where they were told to, those ahead have their planned length.
 *
 * A prune phase that is longer than was taken for it grows by whole lengths, so that an axis moves seldom.
 *
 * @param steps the first and the last step told of each phase.
 * @param over whether the trial has ended: nothing is ahead of it.
 */
export function spansOf(steps: ReadonlyMap<Phase, Steps>, plan: readonly Span[], over: boolean): Span[] {
  if (steps.size === 0) return [...plan];
  const newest = Math.max(...[...steps.keys()].map((phase) => PHASES.indexOf(phase)));
  const spans: Span[] = [];
  let from = 0;
  PHASES.forEach((phase, at) => {
    const told = steps.get(phase)?.last ?? from;
    const wanted = plan.find((each) => each.phase === phase);
    if (at < newest) {
      // It has ended between its last report and the next one's first: where it was to, if that lies there.
      const next = PHASES.slice(at + 1).flatMap((each) => steps.get(each)?.first ?? [])[0] ?? told;
      const to = wanted && wanted.to >= told && wanted.to < next ? wanted.to : told;
      if (to > from) spans.push({ phase, from, to });
      from = Math.max(from, to);
      return;
    }
    const length = over || !wanted ? 0 : wanted.to - wanted.from;
    const lengths = phase === "prune" && length > 0 ? Math.max(1, Math.ceil((told - from) / length)) : 1;
    const to = Math.max(told, from + lengths * length);
    if (to > from) spans.push({ phase, from, to });
    from = Math.max(from, to);
  });
  return spans;
}

/** The phase of a step; null behind the last. */
export const phaseAt = (spans: readonly Span[], step: number): Phase | null =>
  spans.find(({ from, to }) => (step > from || step === 0) && step <= to)?.phase ?? null;

/** "1 in warm-up, 2 in search": trials that run, by their phase. */
export function countedPhases(phases: readonly (Phase | null)[]): string {
  return PHASES.flatMap((phase) => {
    const number = phases.filter((each) => each === phase).length;
    return number ? [`${number} in ${phase}`] : [];
  }).join(", ");
}
