import { describe, expect, it } from "vitest";

import type { Catalog } from "../api/types";
import catalog from "./catalog.json";
import { changed, kept, nameIn, type Draft } from "./draft";
import { numberOf } from "./Field";
import type { Json } from "./json";
import { get } from "./pointer";
import { rulesOf } from "./schema";
import { begin, sourceOf } from "./useDraft";
import { standing } from "./useSubmit";
import { Problem } from "../api/client";

const rules = rulesOf(catalog as never);
const presets = catalog.presets as unknown as Record<string, Record<string, never>>;
const known = catalog as unknown as Pick<Catalog, "presets" | "tasks">;
const loaded = (): Draft =>
  changed(rules, null, {
    type: "loaded",
    source: "preset=quickstart",
    request: presets["quickstart"] as unknown as Json,
  });

describe("a draft", () => {
  it("is written out when it is loaded, and unchanged", () => {
    const draft = loaded();
    expect(draft.text).toBe(draft.loaded);
    expect(JSON.parse(draft.text)).toEqual(presets["quickstart"]);
  });

  it("follows the form in its text, and the text in its form", () => {
    const set = changed(rules, loaded(), { type: "set", parts: [["/space/n_slots", 9]] });
    expect(JSON.parse(set.text).space.n_slots).toBe(9);
    const typed = changed(rules, set, { type: "typed", text: '{"name": "x"}' });
    expect([get(typed.value, "/name"), get(typed.value, "/space/n_slots")]).toEqual(["x", 8]); // the default
    expect(typed.text).toBe('{"name": "x"}');
  });

  it("writes out what a change leaves to defaults", () => {
    const parts: [string, Json][] = [["/task/tokenizer", { type: "words" }]];
    const set = changed(rules, loaded(), { type: "set", parts });
    expect(JSON.parse(set.text).task.tokenizer).toMatchObject({ type: "words", vocab_size: null, min_count: 1 });
  });

  it("keeps the last good request while the text is none, also over a reload", () => {
    const good = changed(rules, loaded(), { type: "set", parts: [["/space/n_slots", 9]] });
    const bad = changed(rules, good, { type: "typed", text: good.text.replace('"n_slots": 9', '"n_slots": 9 9') });
    expect(bad.error).toEqual({ message: 'expected "," or "}", found "9"', place: { line: 6, column: 18 } });
    const again = changed(rules, null, { type: "restored", draft: kept(bad) });
    for (const each of [bad, again]) expect(get(each.value, "/space/n_slots")).toBe(9);
    expect(again.error).toEqual(bad.error);
    expect(changed(rules, again, { type: "formatted" }).text).toBe(good.text);
  });

  it("is no request unless it is an object", () => {
    const draft = changed(rules, loaded(), { type: "typed", text: "[1]" });
    expect(draft.error?.message).toBe("a request is an object, in braces");
    expect(get(draft.value, "/name")).toBe("quickstart");
  });

  it("has another key once it is another request, so that it queues another search", () => {
    const draft = loaded();
    expect(changed(rules, draft, { type: "set", parts: [["/name", "quickstart"]] })).toBe(draft);
    expect(changed(rules, draft, { type: "set", parts: [["/name", "other"]] }).key).not.toBe(draft.key);
    expect(changed(rules, draft, { type: "formatted" }).key).toBe(draft.key);
    expect(draft.key).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe("the address", () => {
  it("says what a request begins as", () => {
    expect(sourceOf(new URLSearchParams("dataset=a b&preset=par&x=1"))).toBe("preset=par&dataset=a%20b");
    expect(get(begin(known, [], null, "preset=par"), "/space/n_slots")).toBe(32);
    expect(get(begin(known, [], null, "preset=none"), "/name")).toBe("quickstart");
    const request = begin(known, [], null, "dataset=mine");
    expect([get(request, "/task/dataset"), get(request, "/name")]).toEqual(["mine", "mine"]);
    const read = begin(known, [], null, sourceOf(new URLSearchParams("tokenizer=pieces&preset=decoder")));
    expect(get(read, "/task/tokenizer")).toEqual({ type: "file", name: "pieces" });
  });

  it("of an earlier search leaves out what that run filled in", () => {
    const task = { ...(catalog.presets.par.task as object), sizes: { vocab_size: 9 }, dataset_fingerprint: "f" };
    const ran = { ...presets["par"], task, latency_table: "abc" };
    const request = begin(known, [], { request: ran }, "from=some-id");
    expect(get(request, "/name")).toBe("par");
    for (const each of ["/latency_table", "/task/dataset_fingerprint", "/task/sizes"]) {
      expect(get(request, each), each).toBeNull();
    }
  });
});

describe("a refusal", () => {
  const value = { space: { n_slots: 0 }, task: { dataset: "x", train_length: 8 } };
  const refused = (pointer: string, code: string) => ({
    problem: new Problem(422, { errors: [{ pointer, detail: "d", code }] }),
    value,
  });

  it("stands until its field is changed", () => {
    const refusal = refused("/space/n_slots", "greater-than-equal");
    expect(standing(refusal, { ...value, name: "other" })).toHaveLength(1);
    expect(standing(refusal, { ...value, space: { n_slots: 1 } })).toHaveLength(0);
    expect(standing(null, value)).toEqual([]);
  });

  it("of a short text goes with any change: shorter windows help too", () => {
    const refusal = refused("/task/dataset", "too-short");
    expect(standing(refusal, value)).toHaveLength(1);
    expect(standing(refusal, { ...value, task: { ...value.task, train_length: 4 } })).toHaveLength(0);
  });
});

it.each([
  ["8", 8],
  [" 1e-3 ", 0.001],
  [".5", 0.5],
  ["1.", 1],
  ["1e-", "1e-"],
  ["0x10", "0x10"],
  ["", ""],
  ["many", "many"],
])("what is typed as %j is sent as %j", (typed, sent) => {
  expect(numberOf(typed)).toBe(sent);
});

it("an empty field can mean nothing at all", () => expect(numberOf(" ", null)).toBeNull());

it("a draft is called by its name", () => {
  expect(nameIn({ text: '{ "name" : 1 }' })).toBe("another request");
  expect(nameIn({ text: '{\n  "name": "a \\"b\\""' })).toBe('“a \\"b\\"”');
});
