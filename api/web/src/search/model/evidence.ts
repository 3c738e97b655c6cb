/** How sure a probability is: the z of its alpha's gradient, in words. */

import { fixed } from "../../ui/format";

/** Below it lies what a gradient of mean zero shows in 19 of 20 draws. */
export const NOISE_Z = 1.96;

export const withinNoise = (z: number | null | undefined): boolean =>
  z != null && Number.isFinite(z) && Math.abs(z) < NOISE_Z;

/** "z 1.8: within noise"; positive z lowers alpha. Nothing where z is not known. */
export function zWords(z: number | null | undefined): string {
  if (z == null || !Number.isFinite(z)) return "";
  return `z ${fixed(z, 1)}: ${withinNoise(z) ? "within noise" : z < 0 ? "pushed up" : "pushed down"}`;
}

/** "p 0.710, z 1.8: within noise". */
export function sureWords(probability: number | null | undefined, z: number | null | undefined): string {
  return [`p ${fixed(probability, 3)}`, zWords(z)].filter(Boolean).join(", ");
}
