/** What follows from a dataset, so that whatever is chosen in the form gives a request that its own checks let pass. */

import { describe, expect, it } from "vitest";

import type { Catalog } from "../api/types";
import catalog from "./catalog.json";
import { atPart, check } from "./checks";
import {
  knowsPositions,
  objectivesFor,
  taskOf,
  tokenizersFor,
  withDataset,
  withObjective,
  withTokenizer,
  type Known,
  type Part,
} from "./data";
import type { Json } from "./json";
import { get, set } from "./pointer";
import { defaultOptions, rulesOf, withDefaults } from "./schema";

const rules = rulesOf(catalog as never);
const known = catalog as unknown as Catalog;
const quickstart = catalog.presets.quickstart as unknown as Json;
const xl = catalog.presets["transformer-xl-base"] as unknown as Json;

const datasets: Known[] = [
  { name: "notes", kind: "text", card: { label_kind: null } },
  { name: "old", kind: "text", card: null },
  { name: "reviews", kind: "documents", card: { label_kind: "sequence" } },
  { name: "tags", kind: "documents", card: { label_kind: "token" } },
  { name: "ids", kind: "tokens", card: { label_kind: null } },
];
const after = (request: Json, parts: Part[]) =>
  withDefaults(
    rules,
    parts.reduce((now, [pointer, part]) => set(now, pointer, part), request),
  );
const choose = (request: Json, name: string) => after(request, withDataset(known, datasets, request, name));
const task = (request: Json) => get(request, "/task") as { [name: string]: Json };

describe("a dataset that is chosen", () => {
  const all = [...datasets.map((each) => each.name), ...rules.tasks.map((each) => each.name)];
  it.each(all)("%s gives a request without fault, whatever was chosen before", (name) => {
    for (const before of all) {
      const found = check(rules, choose(choose(quickstart, before), name));
      // Options may ask for longer windows than a preset has; that is said, not changed behind one's back.
      expect(found, `after ${before}`).toEqual([]);
    }
  });

  it("with labels is classified by an encoder", () => {
    const reviews = choose(quickstart, "reviews");
    expect(task(reviews)).toMatchObject({ dataset: "reviews", objective: "sequence_classification" });
    expect([get(reviews, "/space/causal"), get(reviews, "/space/backbone/pooling")]).toEqual([false, "first"]);
    const tags = choose(reviews, "tags");
    expect(task(tags)["objective"]).toBe("token_classification");
    expect(get(tags, "/space/backbone/pooling")).toBe("none");
    expect(get(choose(tags, "reviews"), "/space/backbone/pooling")).toBe("mean");
    expect(task(choose(tags, "notes"))["objective"]).toBe("masked_lm"); // an encoder it stays
  });

  it("with labels has no memory", () => {
    expect(get(xl, "/space/memory_length")).not.toBe(0);
    const found = choose(xl, "reviews");
    expect([get(found, "/space/memory_length"), get(found, "/task/serve/0/memory_length")]).toEqual([0, 0]);
  });

  it("of token ids needs no tokenizer, and leaves none behind", () => {
    const ids = choose(quickstart, "ids");
    expect(task(ids)["tokenizer"]).toMatchObject({ type: "given" });
    expect(task(choose(ids, "notes"))["tokenizer"]).toMatchObject({ type: "bytes" });
    const bpe = after(quickstart, withTokenizer("bpe", []));
    expect(task(choose(bpe, "notes"))["tokenizer"]).toMatchObject({ type: "bpe" });
  });

  it.each(rules.tasks.map((each) => [each.name, each] as const))("%s is asked as it must be", (name, spec) => {
    const found = choose(after(quickstart, withTokenizer("words", [])), name);
    expect(task(found)).toMatchObject({ dataset: name, objective: spec.objective, dataset_options: defaultOptions(spec) });
    expect(task(found)["tokenizer"]).toEqual(get(quickstart, "/task/tokenizer"));
    expect(get(found, "/space/causal")).toBe(spec.causal ?? get(quickstart, "/space/causal"));
    const pooling = get(found, "/space/backbone/pooling");
    expect(pooling).toBe(spec.unrolled ? "unroll" : spec.objective === "token_classification" ? "none" : "mean");
    expect(taskOf(known, found)?.name).toBe(name);
    expect(task(choose(found, "notes"))).toMatchObject({ dataset_options: {} });
  });

  it("is found anew: what an earlier run filled in is dropped", () => {
    const filled = set(set(quickstart, "/task/dataset_fingerprint", "a".repeat(64)), "/task/sizes", { vocab_size: 9 });
    expect(task(choose(filled, "notes"))).toMatchObject({ dataset_fingerprint: null, sizes: null });
  });
});

describe("an objective", () => {
  it.each([
    ["causal_lm", true],
    ["masked_lm", false],
    ["sequence_classification", false],
    ["token_classification", false],
  ])("%s has causal %s", (objective, causal) => {
    expect(get(after(quickstart, withObjective(quickstart, objective)), "/space/causal")).toBe(causal);
  });

  it("of a decoder is read from the mean: its first token has seen nothing", () => {
    const found = after(quickstart, withObjective(quickstart, "sequence_classification", { causal: true, unrolled: false }));
    expect(get(found, "/space/backbone/pooling")).toBe("mean");
  });

  it("is offered where the data have it, and never hidden", () => {
    const offered = (name: string | undefined, now: string) =>
      objectivesFor(undefined, datasets.find((each) => each.name === name), now).map((each) => each.value);
    expect(offered("notes", "causal_lm")).toEqual(["causal_lm", "masked_lm"]);
    expect(offered("reviews", "causal_lm")).toEqual(["causal_lm", "masked_lm", "sequence_classification"]);
    expect(offered("notes", "token_classification")).toEqual(["causal_lm", "masked_lm", "token_classification"]);
    expect(offered("unknown", "causal_lm")).toHaveLength(4);
    const [first] = known.tasks;
    expect(objectivesFor(first, undefined, first!.objective).map((each) => each.value)).toEqual([first!.objective]);
  });
});

describe("a tokenizer", () => {
  const types = (name: string, now: string) =>
    tokenizersFor(known, datasets.find((each) => each.name === name), now).map((each) => each.type);
  it("is offered where it makes sense of the data", () => {
    expect(types("notes", "bytes")).toEqual(["bytes", "characters", "words", "bpe", "file"]);
    expect(types("ids", "given")).toEqual(["given"]);
    expect(types("ids", "bytes")).toEqual(["bytes", "given"]);
  });

  it("of a file is the first that was uploaded, or is asked for", () => {
    const named = after(quickstart, withTokenizer("file", ["mine", "other"]));
    expect(task(named)["tokenizer"]).toEqual({ type: "file", vocab_size: null, min_count: 1, name: "mine", fingerprint: null });
    expect(check(rules, named)).toEqual([]);
    const none = after(quickstart, withTokenizer("file", []));
    expect(check(rules, none)).toEqual([{ pointer: "/task/tokenizer/name", detail: "which uploaded tokenizer?" }]);
  });

  it("that is a bare name is written out", () => {
    expect(task(withDefaults(rules, { task: { tokenizer: "words" } }))["tokenizer"]).toEqual({
      type: "words",
      vocab_size: null,
      min_count: 1,
      name: null,
      fingerprint: null,
    });
  });
});

it("positions are known where attention or the embedding has them", () => {
  expect(knowsPositions(quickstart)).toBe(true);
  const none = set(quickstart, "/space/positions", "none");
  expect(knowsPositions(none)).toBe(false);
  expect(knowsPositions(set(none, "/space/backbone/position_embedding", "learned"))).toBe(true);
});

describe("a refusal of the task", () => {
  const request = choose(quickstart, "offset");
  it.each([
    ["/task", "option 'distance' of task 'offset': distance is 0; it must be between 1 and 65535", "/dataset_options/distance"],
    ["/task", "unknown option 'distance' of task 'offset'; known: n_symbols", "/dataset_options/distance"],
    ["/task", "synthetic task 'offset': distance is 200 at length 128; it must be at most 127", "/dataset_options/distance"],
    ["/task", "objective is 'causal_lm' but synthetic task 'offset' is token_classification", "/objective"],
    ["/task/tokenizer", "vocab_size is 300 with type 'bytes'; only words and bpe are cut to it", "/vocab_size"],
  ])("at %s that says %s stands at its part", (pointer, detail, part) => {
    expect(atPart(request, { pointer, detail })).toEqual({ pointer: pointer + part, detail });
  });
  it("of its length stands at the length", () => {
    const detail = "synthetic task 'listops': train_length is 128; it must be at least 1999, the longest there is";
    expect(atPart(request, { pointer: "/task", detail }).pointer).toBe("/task/train_length");
  });
  it("of the model stands there", () => {
    const detail = "memory_length is 64 but task.objective is 'token_classification', whose examples stand alone";
    expect(atPart(request, { pointer: "", detail }).pointer).toBe("/space/memory_length");
  });
});
