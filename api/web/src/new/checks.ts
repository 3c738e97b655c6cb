/**
 * What can be said about a request before it is sent, by JSON pointer.
 *
 * Never stricter than the service: a type that it may convert ("8" for 8) passes here. What only the service knows, it
 * says itself when the request arrives.
 */

import type { Json } from "./json";
import { get } from "./pointer";
import { nullable, resolved, type Rules, type Schema, type TaskOptions } from "./schema";

export interface Finding {
  pointer: string;
  detail: string;
}

export function check({ schema, blocks, tasks }: Rules, request: Json): Finding[] {
  const found: Finding[] = [];
  walk(schema, schema, request, "", found);
  list(get(request, "/space/candidates")).forEach((candidate, at) => {
    const block = blocks.find((each) => each.name === get(candidate, "/block"));
    const options = get(candidate, "/options");
    if (!block || options === undefined) return;
    const closed = { ...block.options, additionalProperties: false };
    walk(closed, closed, options, `/space/candidates/${at}/options`, found);
  });
  const task = tasks.find((each) => each.name === get(request, "/task/dataset"));
  if (task) {
    const closed = { ...task.options, additionalProperties: false };
    walk(closed, closed, get(request, "/task/dataset_options") ?? {}, "/task/dataset_options", found);
  }
  if (found.length === 0) {
    across(request, found);
    ofData(request, task, found);
  }
  return found;
}

/** A refusal that begins with the name of a part ("n_keys is 200; ...") stands at that part, where there is one. */
export function atPart(request: Json, { pointer, detail }: Finding): Finding {
  const candidate = /^candidate '([^']*)': (.*)$/s.exec(detail);
  if (candidate) {
    const labels = list(get(request, "/space/candidates")).map((each) => get(each, "/label"));
    const place = `/space/candidates/${labels.indexOf(candidate[1] ?? "")}`;
    const found = atPart(request, { pointer: place, detail: candidate[2] ?? "" }).pointer;
    return { pointer: get(request, found) === undefined ? pointer : found, detail };
  }
  const said = detail
    .replace(/^(unknown )?options? (of (?:block|task) '[^']*': )?/, "$1")
    .replace(/^synthetic task '[^']*': /, "");
  const name = /^(?:unknown )?'?([a-z_]+(?:\.[a-z_]+)*)/.exec(said)?.[1]?.replaceAll(".", "/");
  const number = Number(/ (\d+)/.exec(said)?.[1]); // of the serve modes, the one that is refused
  const decodes = said.includes("decoded") || said.includes("serve mode 'decode'");
  const serve = list(get(request, "/task/serve")).findIndex(
    (each) => get(each, `/${name}`) === number && (!decodes || get(each, "/mode") === "decode"),
  );
  const places = [
    ...["options/", "dataset_options/", ""].map((group) => `${pointer}/${group}${name}`),
    `/task/serve/${serve}/${name}`,
    `/space/${name}`,
  ];
  return { pointer: places.find((each) => get(request, each) !== undefined) ?? pointer, detail };
}

function walk(root: Schema, schema: Schema, value: Json, pointer: string, found: Finding[]): void {
  if (value === null) {
    if (!nullable(schema)) found.push({ pointer, detail: "must not be null" });
    return;
  }
  const here = resolved(root, schema);
  const say = (detail: string): void => {
    found.push({ pointer, detail });
  };
  if (Array.isArray(value)) {
    if (here.type !== "array") return say("must not be a list");
    if (value.length < (here.minItems ?? 0)) say(`must have at least ${here.minItems} items`);
    if (value.length > (here.maxItems ?? Infinity)) say(`must have at most ${here.maxItems} items`);
    value.forEach((each, number) => walk(root, here.items ?? {}, each, `${pointer}/${number}`, found));
  } else if (typeof value === "object") {
    if (here.properties === undefined) return;
    for (const name of here.required ?? []) {
      if (!Object.hasOwn(value, name)) found.push({ pointer: `${pointer}/${name}`, detail: "is missing" });
    }
    for (const [name, each] of Object.entries(value)) {
      const property = here.properties[name];
      if (property) walk(root, property, each, `${pointer}/${name}`, found);
      else if (here.additionalProperties === false) {
        found.push({ pointer: `${pointer}/${name}`, detail: `unknown field ${JSON.stringify(name)}` });
      }
    }
  } else if (typeof value === "number") inRange(here, value, say);
  else if (typeof value === "string") asText(here, value, say);
}

function inRange(schema: Schema, value: number, say: (detail: string) => void): void {
  if (schema.type === "string") return void say("must be text");
  if (schema.const !== undefined && value !== schema.const) return void say(`must be ${JSON.stringify(schema.const)}`);
  if (schema.type === "integer" && !Number.isInteger(value)) return void say(`must be a whole number, not ${value}`);
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  if (minimum !== undefined && value < minimum) say(`must be at least ${minimum}, not ${value}`);
  if (maximum !== undefined && value > maximum) say(`must be at most ${maximum}, not ${value}`);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    say(`must be more than ${exclusiveMinimum}, not ${value}`);
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
    say(`must be less than ${exclusiveMaximum}, not ${value}`);
}

function asText(schema: Schema, value: string, say: (detail: string) => void): void {
  if (schema.type === "integer" || schema.type === "number") {
    // The service reads numbers out of strings, so only what can be none is refused.
    const number = Number(value.replaceAll("_", ""));
    if (value.trim() === "" || Number.isNaN(number)) say(`must be a number, not ${JSON.stringify(value)}`);
    return;
  }
  if (schema.const !== undefined && value !== schema.const) return void say(`must be ${JSON.stringify(schema.const)}`);
  if (schema.enum && !schema.enum.includes(value)) return void say(`must be one of ${schema.enum.join(", ")}`);
  const length = [...value].length; // characters, as the service counts
  if (length < (schema.minLength ?? 0))
    return void say(length === 0 ? "must not be empty" : `needs at least ${schema.minLength} characters`);
  if (length > (schema.maxLength ?? Infinity))
    return void say(`must have at most ${schema.maxLength} characters, not ${length}`);
  if (schema.pattern && !new RegExp(schema.pattern, "u").test(value)) say(`does not match ${schema.pattern}`);
}

/** What no single field shows. */
function across(request: Json, found: Finding[]): void {
  const number = (pointer: string) => {
    const value = get(request, pointer);
    return typeof value === "number" ? value : undefined;
  };
  const say = (pointer: string, detail: string) => found.push({ pointer, detail });

  const width = number("/space/d_model");
  const heads = number("/space/n_heads");
  const longest = number("/space/max_len");
  if (width !== undefined && heads !== undefined) {
    if (width % heads) say("/space/n_heads", `${heads} heads do not divide the width ${width}`);
    else if (get(request, "/space/positions") === "rotary" && (width / heads) % 2) {
      say("/space/n_heads", `rotary positions need an even head width; ${width} / ${heads} is ${width / heads}`);
    }
  }
  const length = number("/task/train_length");
  if (length !== undefined && longest !== undefined && length > longest) {
    say("/task/train_length", `${length} is longer than max_len ${longest}`);
  }
  list(get(request, "/task/serve")).forEach((_, at) => {
    const memory = number(`/task/serve/${at}/memory_length`);
    if (memory && number("/space/memory_length") === 0) {
      say(`/task/serve/${at}/memory_length`, `${memory} tokens, but the slots keep no memory`);
    }
  });
  const tau = [number("/method/tau_start"), number("/method/tau_end")] as const;
  if (tau[0] !== undefined && tau[1] !== undefined && tau[1] > tau[0]) {
    say("/method/tau_end", `${tau[1]} is above tau_start ${tau[0]}; the temperature falls`);
  }
  const labels = list(get(request, "/space/candidates")).map((each) => get(each, "/label"));
  labels.forEach((label, at) => {
    if (labels.indexOf(label) < at) {
      say(`/space/candidates/${at}/label`, `${JSON.stringify(label)} stands for two candidates; labels must differ`);
    }
  });
  const shares = (number("/method/warmup_share") ?? 0) + (number("/method/settle_share") ?? 0);
  if (shares >= 1) say("/method/settle_share", "with warmup_share it leaves nothing for the search");
  for (const [name, absolute] of BOUNDS) {
    const bound = get(request, `/budget/${name}`) ?? null;
    if (bound === null) continue;
    const given = [absolute, "ratio_to_parent"].filter((part) => (get(bound, `/${part}`) ?? null) !== null);
    if (given.length !== 1) say(`/budget/${name}`, `needs exactly one of ${absolute} and ratio_to_parent`);
  }
  const samples = number("/trials/n_samples");
  if (samples !== undefined && samples > 1 && list(get(request, "/ranges")).length === 0) {
    say("/trials/n_samples", `is ${samples} but ranges is empty; nothing would vary`);
  }
  list(get(request, "/task/serve_lengths")).forEach((length, at, all) => {
    if (typeof length === "number" && (length < 2 || length > 65536)) say("/task/serve_lengths", `${length} is not from 2 to 65,536`);
    else if (all.indexOf(length) < at) say("/task/serve_lengths", `${String(length)} stands twice`);
  });
  ofRanges(request, say);
  ofLayout(request, labels, say);
}

const BOUNDS = [
  ["latency", "ms"],
  ["parameters", "at_most"],
  ["flops", "at_most"],
  ["cache_bytes", "at_most"],
] as const;
type Say = (pointer: string, detail: string) => unknown;

function ofRanges(request: Json, say: Say): void {
  const pointers = list(get(request, "/ranges")).map((each) => get(each, "/pointer"));
  list(get(request, "/ranges")).forEach((each, at) => {
    const [low, high] = [get(each, "/low"), get(each, "/high")];
    if (pointers.indexOf(pointers[at]) < at) say(`/ranges/${at}/pointer`, "varies already in another range");
    if (typeof low !== "number" || typeof high !== "number") return;
    if (low >= high) say(`/ranges/${at}/low`, `${low} must be smaller than ${high}`);
    else if (get(each, "/log") === true && low <= 0) say(`/ranges/${at}/low`, "of a logarithmic range must be positive");
  });
}

function ofLayout(request: Json, labels: readonly (Json | undefined)[], say: Say): void {
  const layout = list(get(request, "/space/layout"));
  const slots = get(request, "/space/n_slots");
  const named = layout.map((each) => (typeof each === "string" ? each : (get(each, "/present") ?? null)));
  if (layout.length > 0 && typeof slots === "number" && layout.length !== slots) {
    say("/space/layout", `has ${layout.length} entries for ${slots} slots`);
  }
  layout.forEach((each, at) => {
    const present = named[at] ?? null;
    const forbidden = list(get(each, "/forbidden"));
    const unknown = [...forbidden, ...(present === null ? [] : [present])].find((label) => !labels.includes(label));
    if (unknown !== undefined) say("/space/layout", `slot ${at + 1} names ${JSON.stringify(unknown)}, no candidate`);
    else if (get(each, "/fixed") === true && present === null) say("/space/layout", `slot ${at + 1} is fixed to nothing`);
    else if (get(each, "/fixed") === true && forbidden.includes(present)) {
      say("/space/layout", `slot ${at + 1} is fixed to what it forbids`);
    } else if (get(each, "/fixed") !== true && labels.every((label) => forbidden.includes(label ?? ""))) {
      say("/space/layout", `slot ${at + 1} forbids every candidate; one must be left`);
    }
  });
  const whole = layout.length > 0 && named.every((each) => each !== null);
  if (list(get(request, "/retrain/baselines")).includes("present") && !whole) {
    say("/retrain/baselines", "the starting layout is no baseline until every slot has its present block");
  }
}

const OF = { token_classification: "each token has a label", sequence_classification: "a sequence has one label" };

/** What data, objective and model ask of each other. */
function ofData(request: Json, task: TaskOptions | undefined, found: Finding[]): void {
  const say = (pointer: string, detail: string) => found.push({ pointer, detail });
  const objective = get(request, "/task/objective");
  const causal = get(request, "/space/causal");
  if (objective === "causal_lm" && causal === false) {
    say("/task/objective", "an encoder sees the next token; it learns masked ones");
  }
  if (objective === "masked_lm" && causal === true) {
    say("/task/objective", "masked tokens are for an encoder; causal must be off");
  }
  if (task && objective !== task.objective) {
    say("/task/objective", `${task.name} is ${task.objective.replaceAll("_", " ")}; nothing else`);
  } else if (task && task.causal !== null && causal !== task.causal) {
    say("/space/causal", `${task.name} is for ${task.causal ? "a decoder; causal must be on" : "an encoder; causal must be off"}`);
  }
  const pooling = get(request, "/space/backbone/pooling");
  if (objective === "token_classification" || objective === "sequence_classification") {
    const ofSequence = causal === true ? ["mean"] : ["mean", "first"]; // the first token of a decoder sees no other
    const allowed = task?.unrolled ? ["unroll"] : objective === "token_classification" ? ["none"] : ofSequence;
    if (!allowed.includes(String(pooling))) {
      const unrolled = task?.unrolled ? `all answers of ${task.name} are read off its last token` : undefined;
      const blind = pooling === "first" && objective === "sequence_classification";
      const what = unrolled ?? (blind ? "the first token of a decoder sees no other" : OF[objective]);
      say("/space/backbone/pooling", `${what}; pooling must be ${allowed.join(" or ")}`);
    }
    const memory = get(request, "/space/memory_length");
    if (memory !== 0) say("/space/memory_length", "labelled examples stand alone; it must be 0");
  } else if (get(request, "/space/backbone/n_classes") !== 0) {
    say("/space/backbone/n_classes", "tokens are predicted, not labels; it must be 0");
  }
  const at = (part: string) => `/task/tokenizer/${part}`;
  const said = (part: string) => get(request, at(part)) ?? null;
  const type = said("type");
  if (type === "file" && said("name") === null) say(at("name"), "which uploaded tokenizer?");
  if (type !== "file" && said("name") !== null) say(at("name"), "only a tokenizer.json has a name");
  if (type !== "file" && said("fingerprint") !== null) say(at("fingerprint"), "only a tokenizer.json has one");
  if (type !== "words" && type !== "bpe" && said("vocab_size") !== null) {
    say(at("vocab_size"), "only words and bpe are cut to it");
  }
  if (type !== "words" && (said("min_count") ?? 1) !== 1) say(at("min_count"), "only words are counted; it must be 1");
  if (task && type !== "bytes") say(at("type"), `${task.name} draws token ids itself; it must be left at bytes`);
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
