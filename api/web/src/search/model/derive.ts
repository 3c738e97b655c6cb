/** The bounds of the card "Derive again" as the service reads them. */

import type { components } from "../../api/schema";

export type DeriveBody = components["schemas"]["DeriveBody"];

export interface Bounds {
  /** Of the interleaved parent's latency; "" bounds nothing, as in the other fields. */
  latency: string;
  /** Of the parent's parameters. */
  parameters: string;
  /** Slots with attention. */
  attention: string;
  /** No mixer directly behind a mixer. */
  apart: boolean;
}

export const UNBOUNDED: Bounds = { latency: "", parameters: "", attention: "", apart: false };

export function bodyOf({ latency, parameters, attention, apart }: Bounds, sample: number, best = 2): DeriveBody {
  const ratio = (text: string) => (text === "" ? null : { ratio_to_parent: Number(text) });
  return {
    sample,
    k: best,
    constraints: {
      budget: { latency: ratio(latency), parameters: ratio(parameters) },
      counts: attention === "" ? [] : [{ family: "attention", at_most: Number(attention) }],
      ratios: [],
      forbidden: [],
      forced: [],
      cuts: [],
      mixers_apart: apart,
    },
  };
}

/** The same on the command line. */
export function commandOf({ latency, parameters, attention, apart }: Bounds, id: string): string {
  return [
    `blockwright derive ${id}`,
    latency === "" ? "" : `--at-most latency=${latency}x`,
    parameters === "" ? "" : `--at-most parameters=${parameters}x`,
    attention === "" ? "" : `--count "attention<=${attention}"`,
    apart ? "--mixers-apart" : "",
  ]
    .filter(Boolean)
    .join(" ");
}
