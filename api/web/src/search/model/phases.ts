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

/** The phases as the request has them, those of no steps left out; one of an older service has no settle and no prune. */
export function planned(request: Partial<SearchRequest>, slots: number, candidates: number): Span[] {
  const { n_steps = 0, warmup_share = 0, settle_share = 0, prune_steps = 0 } = (request.method ?? {}) as Partial<
    SearchRequest["method"] & { settle_share: number; prune_steps: number }
  >;
  const warmup = Math.round(warmup_share * n_steps);
  const settle = n_steps - Math.round(settle_share * n_steps);
  const comparison = prune_steps + Math.floor(prune_steps / 4); // as `Method.most_steps` counts
  const ends = [warmup, settle, n_steps, n_steps + slots * candidates * comparison];
  return PHASES.map((phase, at) => ({ phase, from: at ? (ends[at - 1] ?? 0) : 0, to: ends[at] ?? 0 })).filter(
    ({ from, to }) => to > from,
  );
}

/**
 * The phases of one trial: told ones end where they were told to, those ahead have their planned length.
 *
 * @param ends the last step told of each phase.
 * @param over whether the trial has ended: nothing is ahead of it.
 */
export function spansOf(ends: ReadonlyMap<Phase, number>, plan: readonly Span[], over: boolean): Span[] {
  if (ends.size === 0) return [...plan];
  const newest = Math.max(...[...ends.keys()].map((phase) => PHASES.indexOf(phase)));
  const spans: Span[] = [];
  let from = 0;
  PHASES.forEach((phase, at) => {
    const told = ends.get(phase);
    const wanted = plan.find((each) => each.phase === phase);
    const length = over || !wanted ? 0 : wanted.to - wanted.from;
    const to = at < newest ? (told ?? from) : Math.max(told ?? 0, from + length);
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
