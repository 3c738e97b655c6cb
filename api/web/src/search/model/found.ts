/** What newer results hold beside quality and latency: bounds, lengths, serve modes, samples. Older ones lack them. */

import type { Result } from "../../api/types";
import { count } from "../../ui/format";

export interface Serve {
  mode?: string;
  batch: number;
  query_length: number;
  memory_length?: number;
}

export type ServedLatency = NonNullable<Result["latency"]> & { serve: Serve | null };

/** One bound of the budget, and what the derived architecture does with it. */
export interface Kept {
  name: string;
  unit: string;
  target: number;
  predicted: number;
  /** Of paths drawn from the probabilities, where the search ended. */
  expected: number | null;
  measured: number | null;
  low: number | null;
  high: number | null;
  verdict: string;
}

export interface Score {
  bits: number | null;
  se: number | null;
  /** What keeps the network out of this length, as the end of a sentence. */
  why: string | null;
}

export interface AtLength {
  length: number;
  unit: string;
  derived: Score;
  parent: Score | null;
  difference: { bits: number; low: number; high: number; verdict: string } | null;
}

/** A setting of the hyper-parameters, and what came of it. */
export interface Sample {
  sample: number;
  values: Record<string, number>;
  state: string;
  reason: string | null;
  loss: number | null;
  sd: number | null;
  cost: number | null;
}

export interface Winner {
  sample: number;
  sentence: string;
}

/** A network that was retrained; figures in the unit of its comparisons. */
export interface Layout {
  name: string;
  slots: string[];
  seeds: number[];
  mean: number;
}

/** One layout against another: first minus second. */
export interface Compared {
  first: string;
  second: string;
  unit: string;
  difference: number;
  low: number;
  high: number;
  verdict: string;
  n_seeds: number;
  /** The smallest true difference that is found 8 times in 10; null of one seed. */
  detectable: number | null;
  latency: { ratio: number } | null;
}

export interface FoundParts {
  layouts: Layout[];
  comparisons: Compared[];
  /** What the comparisons could show, told before they ran, a line each. */
  power: string[];
  bounds: Kept[];
  lengths: AtLength[];
  samples: Sample[];
  winner: Winner | null;
  /** A line for each trial that its wall time ended. */
  cutShort: string[];
  trainLength: number | null;
}

type Loose = Record<string, unknown>;

const listed = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : []);

export function foundOf(result: Result): FoundParts {
  const all = result as unknown as Loose;
  const trained = (all["search"] as Loose | undefined)?.["train_length"];
  return {
    layouts: listed(all["retrained"]),
    comparisons: listed(all["comparisons"]),
    power: listed<{ message: string }>(all["power"]).map(({ message }) => message),
    bounds: listed((all["derived"] as Loose | undefined)?.["bounds"]),
    lengths: listed(all["lengths"]),
    samples: listed(all["samples"]),
    winner: (all["winner"] as Winner | null | undefined) ?? null,
    cutShort: listed(all["cut_short"]),
    trainLength: typeof trained === "number" ? trained : null,
  };
}

/** One a serve mode; of an older result the first alone. */
export function latenciesOf(result: Result): ServedLatency[] {
  const modes = listed<ServedLatency>((result as unknown as Loose)["latencies"]);
  if (modes.length > 0) return modes;
  const [serve] = listed<Serve>((result.search as Loose)["serve"]);
  return result.latency ? [{ ...result.latency, serve: serve ?? null }] : [];
}

/** "decode, batch 1 × 128 tokens, 64 in memory". */
export function serveWords(serve: Serve | null): string {
  if (!serve) return "first serve mode";
  const memory = serve.memory_length ? `, ${count(serve.memory_length)} in memory` : "";
  return `${serve.mode ? `${serve.mode}, ` : ""}batch ${serve.batch} × ${count(serve.query_length)} tokens${memory}`;
}

/** "as trained", "4 × trained", "¼ of it": a length beside the trained one. */
export function timesTrained(length: number, trained: number | null): string {
  if (trained === null) return "";
  if (length === trained) return "as trained";
  const times = length / trained;
  if (Number.isInteger(times)) return `${times} × trained`;
  return Number.isInteger(1 / times) ? `1/${1 / times} of trained` : `${Number(times.toFixed(2))} × trained`;
}

/** Every setting that varies, in order. */
export const pointersOf = (samples: readonly Sample[]): string[] => [
  ...new Set(samples.flatMap(({ values }) => Object.keys(values))),
];
