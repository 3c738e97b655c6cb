/**
 * What the JSON schema of a request says: defaults, limits, descriptions.
 *
 * The schema comes with the catalogue, so that the form knows no default of its own.
 */

import type { Catalog } from "../api/types";
import type { Json } from "./json";
import { get, parts } from "./pointer";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean;
  required?: string[];
  items?: Schema;
  default?: Json;
  const?: Json;
  enum?: Json[];
  description?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
}

/** What a block of the catalogue brings to a candidate. */
export interface BlockOptions {
  name: string;
  options: Schema;
}

/** What a synthetic task brings to `task`. */
export interface TaskOptions extends BlockOptions {
  objective: string;
  causal: boolean | null;
  unrolled: boolean;
}

/** The schema with its reference followed and, of "this or null", the this. */
export function resolved(root: Schema, schema: Schema): Schema {
  let found = schema;
  for (;;) {
    if (found.$ref) {
      const { $ref, ...beside } = found;
      found = { ...root.$defs?.[$ref.slice($ref.lastIndexOf("/") + 1)], ...beside };
    } else if (found.anyOf) {
      const { anyOf, ...beside } = found;
      found = { ...(anyOf.find((each) => each.type !== "null") ?? {}), ...beside };
    } else return found;
  }
}

export function nullable(schema: Schema): boolean {
  return schema.type === "null" || (schema.anyOf ?? []).some(nullable);
}

/** The schema of one part, unresolved; undefined where the request has no such part. */
export function schemaAt(root: Schema, pointer: string): Schema | undefined {
  let found: Schema | undefined = root;
  for (const part of parts(pointer)) {
    const here: Schema = resolved(root, found);
    found = here.type === "array" ? here.items : here.properties?.[part];
    if (!found) return undefined;
  }
  return found;
}

/** What the description of a class says of one of its fields, "name: words" a line; undefined where it says nothing. */
export function wordsOf(schema: Schema, name: string): string | undefined {
  const found = new RegExp(`^ {4}${name}: (.*(?:\\n {8}.*)*)`, "m").exec(schema.description ?? "");
  return found?.[1]?.replace(/\s+/g, " ");
}

/** What the form knows of requests, all of it from the catalogue. */
export interface Rules {
  schema: Schema;
  blocks: BlockOptions[];
  /** Synthetic tasks, which have options as blocks have. */
  tasks: TaskOptions[];
  presets: { [name: string]: Json };
}

export function rulesOf(catalog: Pick<Catalog, "blocks" | "tasks" | "presets" | "request_schema">): Rules {
  const { blocks, tasks, presets, request_schema } = catalog;
  return {
    schema: request_schema as Schema,
    blocks: blocks as unknown as BlockOptions[],
    tasks: tasks as unknown as TaskOptions[],
    presets: presets as unknown as Rules["presets"],
  };
}

/** A request with every default written out, fields in the schema's order; what the schema does not know stays, last. */
export function withDefaults(rules: Rules, value: Json | undefined): Json {
  const { schema, presets } = rules;
  const preset = get(value, "/preset");
  const below = typeof preset === "string" && Object.hasOwn(presets, preset) ? presets[preset] : undefined;
  return fill(rules, schema, below === undefined ? value : merged(below, value));
}

/** A bound in ms takes the place of a preset's bound by ratio; beside it, it would be refused. */
const WHOLE = ["latency"];

/** As the service puts a request over its preset: objects are merged, of all else the one above stands. */
function merged(below: Json, above: Json | undefined): Json {
  if (above === undefined) return below;
  if (!isObject(below) || !isObject(above)) return above;
  const found = { ...below };
  for (const [name, value] of Object.entries(above)) {
    found[name] = Object.hasOwn(below, name) && !WHOLE.includes(name) ? merged(below[name] ?? null, value) : value;
  }
  return found;
}

function isObject(value: Json): value is { [name: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function fill(rules: Rules, schema: Schema, value: Json | undefined): Json {
  const root = rules.schema;
  if (value === undefined) return schema.default === null ? null : fill(rules, schema, schema.default ?? empty(root, schema));
  const here = resolved(root, schema);
  if (Array.isArray(value)) {
    return here.items ? value.map((each) => fill(rules, here.items!, each)) : value;
  }
  const { properties } = here;
  if (properties && "block" in properties) return candidate(value, rules.blocks);
  if (properties && "type" in properties && typeof value === "string") return fill(rules, schema, { type: value });
  if (properties && "present" in properties && typeof value === "string") return fill(rules, schema, { present: value });
  if (value === null || typeof value !== "object" || !properties) return value;
  const filled: { [name: string]: Json } = {};
  for (const [name, property] of Object.entries(properties)) {
    const required = here.required?.includes(name) && !Object.hasOwn(value, name);
    if (!required) filled[name] = fill(rules, property, Object.hasOwn(value, name) ? value[name] : undefined);
  }
  for (const [name, each] of Object.entries(value)) if (!(name in filled)) filled[name] = each;
  return "dataset_options" in filled ? withTaskOptions(filled, rules.tasks) : filled;
}

/** What a field without a default is, where a request leaves it out. */
function empty(root: Schema, schema: Schema): Json {
  const { type, properties } = resolved(root, schema);
  return properties || type === "object" ? {} : null;
}

/** Of a synthetic task, options left out take their defaults. */
function withTaskOptions(task: { [name: string]: Json }, tasks: TaskOptions[]): Json {
  const spec = tasks.find((each) => each.name === task["dataset"]);
  const options = task["dataset_options"] ?? {};
  if (!spec || !isObject(options)) return task;
  return { ...task, dataset_options: { ...defaultOptions(spec), ...options } };
}

/** A bare name means label = block with the block's default options; options left out take theirs. */
function candidate(value: Json, blocks: BlockOptions[]): Json {
  const given = typeof value === "string" ? { label: value, block: value } : value;
  if (given === null || typeof given !== "object" || Array.isArray(given)) return value;
  const block = blocks.find((each) => each.name === given.block);
  const options = given.options ?? {};
  if (!block || typeof options !== "object" || Array.isArray(options)) return given;
  return { ...given, options: { ...defaultOptions(block), ...options } };
}

export function defaultOptions(block: BlockOptions): { [name: string]: Json } {
  const properties = Object.entries(block.options.properties ?? {});
  return Object.fromEntries(properties.map(([name, schema]) => [name, schema.default ?? null]));
}
