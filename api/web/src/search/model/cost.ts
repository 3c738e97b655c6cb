/** What a slot's candidate costs by the search's latency table, and where the budget lies (nas/cost.py, nas/pressure.py). */

import type { SearchRequest } from "../../api/types";
import { count } from "../../ui/format";

export interface TableBody {
  entries: Record<string, { block: string; options: Record<string, unknown>; median_ms: number }>;
  offset_ms: number;
  scale: number;
}

export interface Costs {
  /** Milliseconds that each label adds to a network. */
  slotMs: Record<string, number>;
  /** Milliseconds of all that is not searched. */
  offsetMs: number;
}

interface Candidate {
  label: string;
  block: string;
  options: Record<string, unknown>;
}

/** The request's candidates; a stored request has them written out. */
export function candidatesOf(request: Partial<SearchRequest>): Candidate[] {
  return ((request.space?.candidates ?? []) as (Candidate | string)[]).map((each) =>
    typeof each === "string" ? { label: each, block: each, options: {} } : { ...each, options: each.options ?? {} },
  );
}

/** Null where a candidate has no entry, or two that differ: a table may hold several shapes. */
export function costsOf(table: TableBody, candidates: readonly Candidate[]): Costs | null {
  const slotMs: Record<string, number> = {};
  for (const { label, block, options } of candidates) {
    const found = Object.values(table.entries).filter(
      (each) => each.block === block && canonical(each.options) === canonical(options),
    );
    const [entry] = found;
    if (!entry || found.some((each) => each.median_ms !== entry.median_ms)) return null;
    slotMs[label] = table.scale * entry.median_ms;
  }
  return { slotMs, offsetMs: table.offset_ms };
}

const canonical = (options: Record<string, unknown>) => JSON.stringify(Object.entries(options).sort());

/** The interleaved parent: the first candidate of attention and of ffn, in turn; null where the space lacks one. */
export function parentOf(
  labels: readonly string[],
  familyOf: (label: string) => string,
  slots: number,
): string[] | null {
  const pair = ["attention", "ffn"].map((family) => labels.find((label) => familyOf(label) === family));
  if (pair.some((label) => label === undefined)) return null;
  return Array.from({ length: slots }, (_, slot) => pair[slot % 2] as string);
}

export const predictMs = (costs: Costs, labels: readonly string[]) =>
  labels.reduce((sum, label) => sum + (costs.slotMs[label] ?? 0), costs.offsetMs);

/** The latency bound in milliseconds of the table's own prediction; null without one, or while the parent's is unknown. */
export function budgetMs(request: Partial<SearchRequest>, parentMs: number | null): number | null {
  const latency = request.budget?.latency;
  if (!latency) return null;
  if (latency.ms != null) return latency.ms;
  return latency.ratio_to_parent != null && parentMs !== null ? latency.ratio_to_parent * parentMs : null;
}

const BOUNDED = [
  ["latency", "latency", "ms"],
  ["parameters", "weights", "weights"],
  ["flops", "operations", "FLOPs"],
  ["cache_bytes", "cache", "bytes of cache"],
] as const;

/** "at most 4 ms", "at most 0.5 of the parent's cache": a bound each, or that there is none. */
export function boundWords(budget: Partial<SearchRequest["budget"]> | undefined): string[] {
  const said = BOUNDED.flatMap(([name, what, unit]) => {
    const bound = budget?.[name] as { ms?: number | null; at_most?: number | null; ratio_to_parent?: number | null } | null;
    const number = bound?.ms ?? bound?.at_most;
    if (number != null) return [`at most ${count(number)} ${unit}`];
    return bound?.ratio_to_parent != null ? [`at most ${bound.ratio_to_parent} of the parent's ${what}`] : [];
  });
  return said.length ? said : ["no bound on its cost"];
}
