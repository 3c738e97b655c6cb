/** The form's view of a request, over the catalogue as the service answers it (tests/api/test_form.py keeps it so). */

import { describe, expect, it } from "vitest";

import cases from "./cases.json";
import catalog from "./catalog.json";
import { atPart, check } from "./checks";
import type { Json } from "./json";
import { plan, plannedUpdates } from "./plan";
import { get, same, set } from "./pointer";
import { rulesOf, schemaAt, withDefaults, wordsOf } from "./schema";

const rules = rulesOf(catalog as never);
const { schema, blocks } = rules;
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
  it("of an empty request are those of the preset decoder", () => {
    expect(withDefaults(rules, {})).toEqual({ ...catalog.presets.decoder, name: "search", preset: null });
  });

  it("leave nothing to refuse where a request says little of its task", () => {
    const request = withDefaults(rules, { task: { dataset: "python-docs", train_length: 32 } });
    expect(get(request, "/task/dataset_options")).toEqual({});
    expect(get(request, "/task/sizes")).toBeNull();
    expect(get(request, "/budget/latency")).toBeNull();
    expect(check(rules, set(request, "/task/serve/0/query_length", 32))).toEqual([]);
  });

  it("are a preset's where the request names one, as the service reads it", () => {
    const request = withDefaults(rules, {
      preset: "quickstart",
      space: { n_slots: 9, candidates: ["ffn"] },
      budget: { latency: { ms: 4 } },
    });
    expect(get(request, "/space/n_slots")).toBe(9);
    expect(get(request, "/space/candidates")).toHaveLength(1);
    expect(get(request, "/method")).toEqual(catalog.presets.quickstart.method);
    expect(get(request, "/budget/latency")).toEqual({ ms: 4, ratio_to_parent: null });
    expect(get(withDefaults(rules, { preset: "none" }), "/space/n_slots")).toBe(8);
    expect(get(withDefaults(rules, { preset: "quickstart", space: 3 }), "/space")).toBe(3);
  });

  it.each(Object.entries(catalog.presets))("leave the whole request %s as it is, in its order", (_, preset) => {
    expect(JSON.stringify(withDefaults(rules, preset as unknown as Json))).toBe(JSON.stringify(preset));
  });

  it("expand a candidate's name and fill in its options", () => {
    const request = withDefaults(rules, {
      space: { candidates: ["ffn", { label: "m", block: "mgk", options: { n_keys: 3 } }] },
    });
    expect(get(request, "/space/candidates/0")).toEqual({
      label: "ffn",
      block: "ffn",
      options: { ratio: 4, activation: "gelu", bias: true },
    });
    expect(get(request, "/space/candidates/1/options")).toMatchObject({ n_heads: null, n_keys: 3, keys: "free" });
  });

  it("keep what the schema does not know, so that the service can refuse it", () => {
    expect(get(withDefaults(rules, { space: { depth: 3 } }), "/space/depth")).toBe(3);
  });

  it("stand with limits and a description at their pointer", () => {
    expect(schemaAt(schema, "/space/n_slots")).toMatchObject({ minimum: 1, maximum: 512 });
    expect(schemaAt(schema, "/task/serve/0/batch")).toMatchObject({ maximum: 4096 });
    expect(schemaAt(schema, "/space/depth")).toBeUndefined();
  });

  it("are told in the words of the class, where a field has none of its own", () => {
    const options = blocks.find((each) => each.name === "attention")!.options;
    expect(wordsOf(options, "n_kv_heads")).toBe(
      "heads of keys and values, each serving n_heads / n_kv_heads query heads; None: as many as n_heads.",
    );
    expect(wordsOf(options, "depth")).toBeUndefined();
    const backbone = schemaAt(schema, "/space/backbone");
    expect(wordsOf({ ...backbone, ...schema.$defs?.["BackboneConfig"] }, "cutoffs")).toMatch(
      /^first token ids .* with none left the head is a plain softmax\.$/,
    );
  });
});

describe("checks", () => {
  it.each(
    cases as { what: string; set: Record<string, unknown>; refused_at: string | null; seen?: boolean | string }[],
  )("$what", ({ set: changes, refused_at, seen }) => {
    const found = check(rules, withDefaults(rules, changed(changes))).map((each) => each.pointer);
    if (refused_at === null || !seen) expect(found).toEqual([]);
    else expect(found).toEqual([seen === true ? refused_at : seen]);
  });
});

describe("a refusal", () => {
  const request = withDefaults(rules, quickstart);
  it.each([
    ["/space/candidates/4", "options of block 'mgk': n_keys is 200; it must be between 1 and 64", "/options/n_keys"],
    ["/space/candidates/1", "option 'ratio' of block 'ffn': input should be a valid integer", "/options/ratio"],
    ["/space/candidates/4", "unknown candidate block 'sgux'; known: attention", ""],
    ["/space", "memory_length is 64 in an encoder; only a causal decoder has memory", "/memory_length"],
    ["/space", "rotary positions need an even head width", ""],
    ["/space/backbone", "n_classes is 1; it must be 0 (none) or at least 2", "/n_classes"],
    ["/space/n_slots", "input should be greater than or equal to 1, got 0", ""],
  ])("at %s that says %s stands at its part", (pointer, detail, part) => {
    expect(atPart(request, { pointer, detail })).toEqual({ pointer: pointer + part, detail });
  });

  it("of a candidate by its label, or of a part by its path, stands there", () => {
    const heads = "candidate 'attention': n_kv_heads 3 does not divide n_heads 4";
    expect(atPart(request, { pointer: "/space", detail: heads }).pointer).toBe("/space/candidates/0/options/n_kv_heads");
    expect(atPart(request, { pointer: "/space", detail: "candidate 'x': ratio is 0" }).pointer).toBe("/space");
    const long = "query_length 128 is longer than max_len 64, and candidate 'sgu' cannot run there: it has no weights";
    expect(atPart(request, { pointer: "", detail: long }).pointer).toBe("/task/serve/0/query_length");
    const modes = set(set(request, "/task/serve/1", get(request, "/task/serve/0")!), "/task/serve/1/mode", "decode");
    const decoded = "query_length 128, with the token that is decoded, is longer than train_length 128, and x";
    expect(atPart(modes, { pointer: "", detail: decoded }).pointer).toBe("/task/serve/1/query_length");
    const classes = "space.backbone.n_classes is 2 but task.objective is 'causal_lm'";
    expect(atPart(request, { pointer: "", detail: classes }).pointer).toBe("/space/backbone/n_classes");
  });
});

describe("plan", () => {
  it("says what the quickstart does", () => {
    expect(plan(quickstart)).toEqual([
      "2 supernets of 6 slots × 5 candidates (15,625 architectures), 1,200 weight updates each, on python-stdlib in windows of 128 tokens.",
      "From each seed the most probable architecture that is no slower than the interleaved parent is derived, without the blocks that buy nothing on held-out data.",
      "Each different one and the interleaved parent are retrained for 800 updates with 2 seeds: at most 6 retrainings.",
      "The best is compared with the parent on data that nothing has seen, and exported as a model that runs by itself.",
      "At most 8,700 weight updates in all; each trial takes 1 CPU.",
    ]);
    const pruning = 1200 / 2 + 2 * (60 + 15); // half of the search's, and one comparison that was begun before
    expect(plannedUpdates(quickstart)).toBe(2 * (1200 + pruning) + 3 * 2 * 800); // as the service's progress counts
  });

  it("speaks of one as of one", () => {
    const one = changed({
      "/trials/n_seeds": 1,
      "/space/n_slots": 1,
      "/method/n_steps": 1,
      "/method/prune_steps": 0,
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

  it("speaks of examples where there are labels", () => {
    expect(plan(changed({ "/task/objective": "sequence_classification" }))[0]).toContain(
      "on python-stdlib in examples of up to 128 tokens.",
    );
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
