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
  presets: { [name: string]: Json };
}

export function rulesOf(catalog: Pick<Catalog, "blocks" | "presets" | "request_schema">): Rules {
  const { blocks, presets, request_schema } = catalog;
  return {
    schema: request_schema as Schema,
    blocks: blocks as unknown as BlockOptions[],
    presets: presets as unknown as Rules["presets"],
  };
}

/** A request with every default written out, fields in the schema's order; what the schema does not know stays, last. */
export function withDefaults({ schema, blocks, presets }: Rules, value: Json | undefined): Json {
  const preset = get(value, "/preset");
  const below = typeof preset === "string" && Object.hasOwn(presets, preset) ? presets[preset] : undefined;
  return fill(schema, schema, below === undefined ? value : merged(below, value), blocks);
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

function fill(root: Schema, schema: Schema, value: Json | undefined, blocks: BlockOptions[]): Json {
  if (value === undefined)
    return fill(root, schema, schema.default ?? (resolved(root, schema).properties ? {} : null), blocks);
  const here = resolved(root, schema);
  if (Array.isArray(value)) {
    return here.items ? value.map((each) => fill(root, here.items!, each, blocks)) : value;
  }
  if (here.properties && "block" in here.properties) return candidate(value, blocks);
  if (value === null || typeof value !== "object" || !here.properties) return value;
  const filled: { [name: string]: Json } = {};
  for (const [name, property] of Object.entries(here.properties)) {
    const required = here.required?.includes(name) && !Object.hasOwn(value, name);
    if (!required) filled[name] = fill(root, property, Object.hasOwn(value, name) ? value[name] : undefined, blocks);
  }
  for (const [name, each] of Object.entries(value)) if (!(name in filled)) filled[name] = each;
  return filled;
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
