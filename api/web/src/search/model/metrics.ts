/** The figures that papers compare, beside the quality that a search goes by; and the lines that they are read against. */

import type { Metric, Result, Search } from "../../api/types";
import { fixed } from "../../ui/format";

/** Without what the quality says already; a result of an older version has none. */
export function metricsOf(result: Result): Metric[] {
  return (result.metrics ?? []).filter(({ name }) => name !== result.quality?.unit);
}

/** "0.912", "34.8", "1,204". */
export function figure(value: number | null): string {
  if (value === null) return "–";
  const size = Math.abs(value);
  return size >= 1000 ? Math.round(value).toLocaleString("en-US") : fixed(value, size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

/** "always the most frequent answer 0.588, blind guess 0.333, best there is 1.000". */
export function references({ majority, chance, best }: Metric): string {
  const said: [string, number | null | undefined][] = [
    ["always the most frequent answer", majority],
    ["a blind guess", chance],
    ["the best there is", best],
  ];
  return said.flatMap(([words, value]) => (value == null ? [] : [`${words}: ${figure(value)}`])).join("; ");
}

/** What the curves of loss are told in: labels are scored where there are any, else tokens. */
export function lossUnit(request: Search["request"]): string {
  const { objective } = (request["task"] ?? {}) as { objective?: string };
  return `nats per ${objective?.endsWith("_classification") ? "label" : "token"}`;
}
