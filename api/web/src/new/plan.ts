/** What a request will do, in plain words: each sentence says what is trained, how often and on what. */

import type { Json } from "./json";
import { get } from "./pointer";

/** Sentences; empty where the request's numbers are none. */
export function plan(request: Json): string[] {
  const number = (pointer: string) => {
    const value = get(request, pointer);
    return typeof value === "number" && Number.isFinite(value) ? value : NaN;
  };
  const slots = number("/space/n_slots");
  const candidates = get(request, "/space/candidates");
  const seeds = number("/trials/n_seeds");
  const samples = number("/trials/n_samples");
  const steps = number("/method/n_steps");
  const retrainSteps = number("/retrain/n_steps");
  const retrainSeeds = number("/retrain/n_seeds");
  const length = number("/task/train_length");
  const dataset = get(request, "/task/dataset");
  if (
    !Array.isArray(candidates) ||
    candidates.length === 0 ||
    ![slots, seeds, samples, steps, retrainSteps, retrainSeeds, length].every((each) => each >= 1)
  ) {
    return [];
  }
  const labelled = String(get(request, "/task/objective")).endsWith("_classification");
  const pieces = labelled ? "examples of up to" : "windows of";
  const baselines = get(request, "/retrain/baselines");
  const parent = Array.isArray(baselines) && baselines.length > 0;
  const supernets = seeds * samples;
  const sampled =
    samples > 1 ? ` (${count(samples, "setting")} of the hyper-parameters, ${count(seeds, "seed")} each)` : "";
  const retrainings = (seeds + (parent ? 1 : 0)) * retrainSeeds;
  return [
    `${count(supernets, "supernet")}${sampled} of ${count(slots, "slot")} × ${count(candidates.length, "candidate")}` +
      ` (${architectures(candidates.length, slots)}), ${count(steps, "weight update")}${supernets > 1 ? " each" : ""},` +
      ` on ${typeof dataset === "string" && dataset ? dataset : "a dataset"} in ${pieces} ${grouped(length)} tokens.`,
    `From ${seeds > 1 ? "each seed" : "it"} the most probable architecture${budget(request)} is derived` +
      `${number("/method/prune_steps") > 0 ? ", without the blocks that buy nothing on held-out data" : ""}.`,
    `Each different one${parent ? " and the interleaved parent are" : " is"} retrained for ${count(retrainSteps, "update")}` +
      ` with ${count(retrainSeeds, "seed")}: at most ${count(retrainings, "retraining")}.`,
    parent
      ? "The best is compared with the parent on data that nothing has seen, and exported as a model that runs by itself."
      : "The best is measured on data that nothing has seen, and exported as a model that runs by itself.",
    `At most ${count(plannedUpdates(request), "weight update")} in all; each trial takes ${resources(request)}.`,
  ];
}

/** Weight updates of all trials, as the service plans them. */
export function plannedUpdates(request: Json): number {
  const number = (pointer: string) => Number(get(request, pointer) ?? NaN);
  const baselines = get(request, "/retrain/baselines");
  const steps = number("/method/n_steps");
  const comparison = Number(get(request, "/method/prune_steps") ?? 0);
  const last = 2 * (comparison + Math.floor(comparison / 4));
  const pruning = comparison && Math.ceil(number("/method/prune_share") * steps) + last; // as `Method.most_steps` counts
  const search = number("/trials/n_samples") * number("/trials/n_seeds") * (steps + pruning);
  const derived = number("/trials/n_seeds") + (Array.isArray(baselines) ? baselines.length : 0);
  return search + derived * number("/retrain/n_seeds") * number("/retrain/n_steps");
}

function resources(request: Json): string {
  const cpus = Number(get(request, "/resources/cpus"));
  const gpus = Number(get(request, "/resources/gpus"));
  return `${count(cpus, "CPU")}${gpus > 0 ? ` and ${count(gpus, "GPU")}` : ""}`;
}

const BOUNDED = { latency: "latency", parameters: "weights", flops: "operations", cache_bytes: "cache" };
const UNITS = { latency: "ms", parameters: "weights", flops: "FLOPs", cache_bytes: "bytes of cache" };

/** " that is no slower than the interleaved parent and within 1,000,000 weights": all bounds hold. */
function budget(request: Json): string {
  const said = (Object.keys(BOUNDED) as (keyof typeof BOUNDED)[]).flatMap((name) => {
    const ratio = get(request, `/budget/${name}/ratio_to_parent`);
    const number = get(request, `/budget/${name}/${name === "latency" ? "ms" : "at_most"}`);
    if (typeof ratio === "number") {
      if (name === "latency" && ratio === 1) return ["that is no slower than the interleaved parent"];
      return [`within ${ratio} × the interleaved parent's ${BOUNDED[name]}`];
    }
    return typeof number === "number" ? [`within ${grouped(number)} ${UNITS[name]}`] : [];
  });
  return said.length ? ` ${said.join(" and ")}` : "";
}

function architectures(candidates: number, slots: number): string {
  const number = candidates ** slots;
  if (number < 1e9) return count(number, "architecture");
  const power = slots * Math.log10(candidates);
  return `more than 10${superscript(Math.floor(power))} architectures`;
}

const superscript = (value: number) => [...String(value)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("");

export const grouped = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 6 });

function count(value: number, noun: string): string {
  return `${grouped(value)} ${noun}${value === 1 ? "" : "s"}`;
}
