/** Hyper-parameters that Optuna varies: which may, and where a range begins. */

import type { Json } from "./json";
import { get } from "./pointer";
import { resolved, type Schema, schemaAt } from "./schema";

/** Fields of `method` that are numbers. */
export function varying(schema: Schema): string[] {
  const method = resolved(schema, schemaAt(schema, "/method") ?? {});
  return Object.entries(method.properties ?? {}).flatMap(([name, field]) =>
    ["number", "integer"].includes(resolved(schema, field).type ?? "") ? [name] : [],
  );
}

const tidy = (value: number) => Number(value.toPrecision(3));

/** A range around what the request has: a quarter to four times of it, within what the field allows. */
export function rangeAround(schema: Schema, request: Json, name: string): Json {
  const field = resolved(schema, schemaAt(schema, `/method/${name}`) ?? {});
  const whole = field.type === "integer";
  const now = Number(get(request, `/method/${name}`) ?? 0);
  const round = (value: number) => (whole ? Math.round(value) : tidy(value));
  const least = field.minimum ?? field.exclusiveMinimum ?? -Infinity;
  const most = field.maximum ?? Infinity;
  const top = field.exclusiveMaximum === undefined ? most : Math.min(most, tidy(0.9 * field.exclusiveMaximum));
  const low = Math.max(least, round(now / 4));
  const high = Math.min(top, round(4 * now));
  // What is 0, or stands at an end, has nothing on one side of it.
  if (low < high && !(field.exclusiveMinimum !== undefined && low <= field.exclusiveMinimum)) {
    return { pointer: `/method/${name}`, low, high, log: low > 0 && !whole };
  }
  return { pointer: `/method/${name}`, low: Math.max(least, 0), high: Math.min(top, whole ? 10 : 0.1), log: false };
}
