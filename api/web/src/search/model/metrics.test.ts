import { describe, expect, it } from "vitest";

import type { Metric, Result } from "../../api/types";
import { figure, lossUnit, metricsOf, references } from "./metrics";
import { modelCommands } from "./use";

const metric = (changes: Partial<Metric>): Metric => ({
  name: "accuracy",
  unit: "share of examples",
  lower_is_better: false,
  derived: 0.9,
  parent: 0.8,
  derived_seeds: [],
  parent_seeds: [],
  ...changes,
});
const result = (changes: object) => changes as unknown as Result;

it("what the quality says is not said twice", () => {
  const metrics = [metric({ name: "bits per byte" }), metric({ name: "token perplexity" })];
  const found = metricsOf(result({ metrics, quality: { unit: "bits per byte" } }));
  expect(found.map((each) => each.name)).toEqual(["token perplexity"]);
  expect(metricsOf(result({ metrics, quality: null }))).toHaveLength(2);
  expect(metricsOf(result({ quality: null }))).toEqual([]); // of a search before there were metrics
});

it.each([
  [null, "–"],
  [0.91234, "0.912"],
  [-0.5, "−0.500"],
  [34.812, "34.81"],
  [345.67, "345.7"],
  [12045.6, "12,046"],
])("%s is told as %s", (value, words) => expect(figure(value)).toBe(words));

it("figures are read against what costs nothing, and the best there is", () => {
  expect(references(metric({}))).toBe("");
  expect(references(metric({ majority: 0.5883, chance: null, best: 1 }))).toBe(
    "always the most frequent answer: 0.588; the best there is: 1.000",
  );
});

it.each([
  [{ task: { objective: "causal_lm" } }, "nats per token"],
  [{ task: { objective: "token_classification" } }, "nats per label"],
  [{}, "nats per token"],
])("the loss of %j is in %s", (request, unit) => expect(lossUnit(request)).toBe(unit));

describe("the command that uses a model", () => {
  it.each([
    ["causal_lm", "bytes", false, 'python model.py --prompt "import " --bytes 200', "torch safetensors"],
    ["causal_lm", "bpe", false, 'python model.py --prompt "import " --tokens 50', "torch safetensors tokenizers"],
    ["causal_lm", "given", false, 'python model.py --ids "1 0 1"', "torch safetensors"],
    ["masked_lm", "bytes", false, 'python model.py --prompt "some te_t"', "torch safetensors"],
    ["masked_lm", "words", false, 'python model.py --prompt "some [MASK]"', "torch safetensors tokenizers"],
    ["masked_lm", "given", false, 'python model.py --ids "1 _ 0"', "torch safetensors"],
    ["sequence_classification", "bytes", false, 'python model.py --prompt "some text"', "torch safetensors"],
    ["token_classification", "bytes", true, 'python model.py --ids "1 0 1"', "torch safetensors"],
  ])("of %s with %s (synthetic: %s)", (objective, type, synthetic, command, packages) => {
    const found = modelCommands(result({ search: { objective, tokenizer: { type } } }), synthetic);
    expect(found.run).toBe(command);
    expect(found.packages.join(" ")).toBe(packages);
  });

  it("of a search before there were tokenizers reads bytes", () => {
    const found = modelCommands(result({ search: { objective: "causal_lm", tokenizer: "bytes" } }), false);
    expect(found.run).toContain("--bytes 200");
    expect(modelCommands(result({ search: {} }), false).run).toContain("--bytes 200");
  });
});
