/** The form's view of a request, over the catalogue as the service answers it (tests/api/test_form.py keeps it so). */

import { describe, expect, it } from "vitest";

import cases from "./cases.json";
import catalog from "./catalog.json";
import { check } from "./checks";
import type { Json } from "./json";
import { plan, plannedUpdates } from "./plan";
import { get, same, set } from "./pointer";
import { schemaAt, type BlockOptions, type Schema, withDefaults } from "./schema";

const schema = catalog.request_schema as unknown as Schema;
const blocks = catalog.blocks as unknown as BlockOptions[];
const quickstart = catalog.presets.quickstart as unknown as Json;

const changed = (changes: Record<string, unknown>) =>
  Object.entries(changes).reduce((value, [pointer, part]) => set(value, pointer, part as Json), quickstart);

describe("pointers", () => {
  it("read and write without changing the original", () => {
    const before = { a: [{ "b/~c": 1 }], d: 2 };
    const after = set(before, "/a/0/b~1~0c", 3);
    expect(get(after, "/a/0/b~1~0c")).toBe(3);
    expect(get(before, "/a/0/b~1~0c")).toBe(1);
    expect(get(before, "/toString")).toBeUndefined();
    expect(set(undefined, "/x/y", 1)).toEqual({ x: { y: 1 } });
    expect(same(before, { d: 2, a: [{ "b/~c": 1 }] })).toBe(true);
    expect(same(before, after)).toBe(false);
    expect(same([], {})).toBe(false);
  });
});

describe("defaults", () => {
  it("of an empty request are the preset that changes none", () => {
    expect(withDefaults(schema, {}, blocks)).toEqual({ ...catalog.presets.default, name: "search" });
  });

  it.each(Object.entries(catalog.presets))("leave the whole request %s as it is, in its order", (_, preset) => {
    expect(JSON.stringify(withDefaults(schema, preset as unknown as Json, blocks))).toBe(JSON.stringify(preset));
  });

  it("expand a candidate's name and fill in its options", () => {
    const request = withDefaults(
      schema,
      { space: { candidates: ["ffn", { label: "m", block: "mgk", options: { n_keys: 3 } }] } },
      blocks,
    );
    expect(get(request, "/space/candidates")).toEqual([
      { label: "ffn", block: "ffn", options: { ratio: 4 } },
      { label: "m", block: "mgk", options: { n_heads: null, n_keys: 3 } },
    ]);
  });

  it("keep what the schema does not know, so that the service can refuse it", () => {
    expect(get(withDefaults(schema, { space: { depth: 3 } }, blocks), "/space/depth")).toBe(3);
  });

  it("stand with limits and a description at their pointer", () => {
    expect(schemaAt(schema, "/space/n_slots")).toMatchObject({ minimum: 1, maximum: 512 });
    expect(schemaAt(schema, "/task/serve/0/batch")).toMatchObject({ maximum: 4096 });
    expect(schemaAt(schema, "/space/depth")).toBeUndefined();
  });
});

describe("checks", () => {
  it.each(
    cases as { what: string; set: Record<string, unknown>; refused_at: string | null; seen?: boolean | string }[],
  )("$what", ({ set: changes, refused_at, seen }) => {
    const found = check(schema, withDefaults(schema, changed(changes), blocks)).map((each) => each.pointer);
    if (refused_at === null || !seen) expect(found).toEqual([]);
    else expect(found).toEqual([seen === true ? refused_at : seen]);
  });
});

describe("plan", () => {
  it("says what the quickstart does", () => {
    expect(plan(quickstart)).toEqual([
      "2 supernets of 6 slots × 5 candidates (15,625 architectures), 1,200 weight updates each, on python-stdlib in windows of 128 tokens.",
      "From each seed the most probable architecture that is no slower than the interleaved parent is derived.",
      "Each different one and the interleaved parent are retrained for 800 updates with 2 seeds: at most 6 retrainings.",
      "The best is compared with the parent on text that nothing has seen, and exported as a model that runs by itself.",
      "At most 7,200 weight updates in all; each trial takes 1 CPU.",
    ]);
    expect(plannedUpdates(quickstart)).toBe(2 * 1200 + 3 * 2 * 800); // as the service's progress counts
  });

  it("speaks of one as of one", () => {
    const one = changed({
      "/trials/n_seeds": 1,
      "/space/n_slots": 1,
      "/method/n_steps": 1,
      "/retrain/n_seeds": 1,
      "/retrain/baselines": [],
      "/budget/latency": { ms: 2 },
    });
    expect(plan(one).slice(0, 3)).toEqual([
      "1 supernet of 1 slot × 5 candidates (5 architectures), 1 weight update, on python-stdlib in windows of 128 tokens.",
      "From it the most probable architecture within 2 ms is derived.",
      "Each different one is retrained for 800 updates with 1 seed: at most 1 retraining.",
    ]);
  });

  it("names the GPUs", () => {
    expect(plan(changed({ "/resources": { cpus: 2, gpus: 0.5 } })).at(-1)).toContain(
      "each trial takes 2 CPUs and 0.5 GPUs.",
    );
  });

  it("gives a big space by its power of ten", () => {
    expect(plan(catalog.presets.par as unknown as Json)[0]).toContain(
      "32 slots × 3 candidates (more than 10¹⁵ architectures)",
    );
  });

  it("is silent where a number is none", () => {
    expect(plan(changed({ "/space/n_slots": "x" }))).toEqual([]);
    expect(plan(changed({ "/trials/n_seeds": 0 }))).toEqual([]);
    expect(plan(changed({ "/space/candidates": [] }))).toEqual([]);
  });
});
