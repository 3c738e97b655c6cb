/**
 * The request while it is written: its text, and what the form shows of it. Both are views of one text.
 *
 * A text that is no JSON leaves the form at what it showed last. The draft lives in the tab's session storage, so that a
 * reload loses nothing.
 */

import { format, parse, type Json, type Place } from "./json";
import { same, set } from "./pointer";
import { type Rules, withDefaults } from "./schema";

export interface Draft {
  /** What it began as: "preset=quickstart", "from=<id>", with "&dataset=<name>" where a text was chosen. */
  source: string;
  text: string;
  /** The text as it was loaded. */
  loaded: string;
  /** The last good request, defaults written out. */
  value: Json;
  /** Where each part stands in the text; null while it is no JSON. */
  places: Map<string, Place> | null;
  error: { message: string; place: Place } | null;
  /** Sent with the request: sent twice, it queues one search. A changed request is another one. */
  key: string;
}

export type Change =
  | { type: "loaded"; source: string; request: Json }
  | { type: "restored"; draft: Stored }
  | { type: "typed"; text: string }
  | { type: "set"; parts: [pointer: string, part: Json][] }
  | { type: "formatted" };

export function changed(rules: Rules, draft: Draft | null, change: Change): Draft {
  if (change.type === "loaded") {
    const value = withDefaults(rules, change.request);
    const text = format(value);
    return written(rules, { source: change.source, loaded: text, value }, text, newKey());
  }
  if (change.type === "restored") {
    const { source, loaded, good, text, key } = change.draft;
    const before = parse(good);
    const value = withDefaults(rules, before.ok ? before.value : {});
    return written(rules, { source, loaded, value }, text, key);
  }
  if (draft === null) throw new Error(`a draft begins before it is ${change.type}`);
  if (change.type === "typed") return written(rules, draft, change.text, newKey());
  if (change.type === "formatted") return written(rules, draft, format(draft.value), draft.key);
  const value = withDefaults(
    rules,
    change.parts.reduce((now, [pointer, part]) => set(now, pointer, part), draft.value),
  );
  return same(value, draft.value) ? draft : written(rules, draft, format(value), newKey());
}

function written(rules: Rules, draft: Pick<Draft, "source" | "loaded" | "value">, text: string, key: string): Draft {
  const { source, loaded } = draft;
  const parsed = parse(text);
  if (!parsed.ok) {
    const { message, place } = parsed;
    return { source, loaded, text, key, value: draft.value, places: null, error: { message, place } };
  }
  if (parsed.value === null || typeof parsed.value !== "object" || Array.isArray(parsed.value)) {
    const error = { message: "a request is an object, in braces", place: { line: 1, column: 1 } };
    return { source, loaded, text, key, value: draft.value, places: null, error };
  }
  const value = withDefaults(rules, parsed.value);
  return { source, loaded, text, key, value, places: parsed.places, error: null };
}

/** A random name; crypto.randomUUID exists only on https and loopback. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What outlives the page: the text, and the last good request, which the text may no longer say. */
export type Stored = Pick<Draft, "source" | "loaded" | "text" | "key"> & { good: string };
const STORAGE = "blockwright-new-search";

export function kept({ source, loaded, text, key, value }: Draft): Stored {
  return { source, loaded, text, key, good: JSON.stringify(value) };
}

export function store(draft: Stored): void {
  try {
    sessionStorage.setItem(STORAGE, JSON.stringify(draft));
  } catch {
    // full or forbidden: the draft lives as long as the page
  }
}

export function stored(): Stored | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(STORAGE) ?? "null") as Stored | null;
    const whole =
      found !== null &&
      [found.source, found.loaded, found.text, found.key, found.good].every((each) => typeof each === "string");
    return whole ? found : null;
  } catch {
    return null;
  }
}

/** What was sent needs no keeping; what was written since does. */
export function forget({ text }: { text: string }): void {
  try {
    if (stored()?.text === text) sessionStorage.removeItem(STORAGE);
  } catch {
    // forbidden: there is nothing to forget
  }
}

/** The name in a request's text, for people. */
export function nameIn({ text }: { text: string }): string {
  const name = /"name":\s*"((?:\\.|[^"\\])*)"/.exec(text)?.[1];
  return name ? `“${name}”` : "another request";
}
