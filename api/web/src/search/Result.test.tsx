/** What the result says, with the units that the service tells. */

import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it, vi } from "vitest";

import type { Result as Found } from "../api/types";
import { Model, Result } from "./Result";

const look = () => ({ family: "attention", letter: "A", colour: "#4477AA", ink: "#ffffff" });
const architecture = { role: "argmax", string: "AF", slots: ["attention", "ffn"], undecided: [], sample: 0, seed: 0 };
const found = {
  search: { dataset: "reviews", objective: "sequence_classification", tokenizer: { type: "words" } },
  derived: architecture,
  parent: architecture,
  quality: {
    unit: "bits per label",
    derived_bits_per_byte: 0.51,
    parent_bits_per_byte: 0.62,
    difference: -0.11,
    low: -0.2,
    high: -0.02,
    verdict: "better",
    n_windows: 90,
    n_seeds: 3,
  },
  latency: null,
  metrics: [
    { name: "bits per label", unit: "bits", lower_is_better: true, derived: 0.51, parent: 0.62 },
    {
      name: "accuracy",
      unit: "share of examples",
      lower_is_better: false,
      derived: 0.912,
      parent: 0.871,
      majority: 0.6,
    },
  ],
  export: { logits_max_abs_difference: 1e-6 },
};
const drawn = (changes: object) =>
  renderToStaticMarkup(<Result result={{ ...found, ...changes } as unknown as Found} look={look} />).replaceAll(
    /<[^>]*>/g,
    " ",
  );

describe("the result", () => {
  it("speaks of quality in the unit that the service tells", () => {
    expect(drawn({})).toMatch(/0\.510\s+bits per label/);
    expect(drawn({})).not.toContain("bits per byte");
  });

  it("says what the field goes by beside it, and what costs nothing", () => {
    const words = drawn({}).replaceAll(/\s+/g, " ");
    expect(words).toContain("in accuracy share of examples; always the most frequent answer: 0.600 0.912 0.871");
    expect(words).toContain("+0.041 better");
    expect(words.match(/bits per label/g)).toHaveLength(3); // once a cell: not again among the metrics
  });

  it("does not tell a small difference as 0", () => {
    const quality = { ...found.quality, difference: -0.00012, low: -0.0002, high: -0.00004 };
    expect(drawn({ quality })).toContain("−0.00020 to −0.00004");
  });

  it("counts examples where they have labels, else windows of a text", () => {
    expect(drawn({})).toContain("90 examples");
    expect(drawn({ search: { ...found.search, objective: "causal_lm" } })).toContain("90 windows");
  });

  it("tells them without a baseline too", () => {
    const words = drawn({ parent: null, quality: null }).replaceAll(/\s+/g, " ");
    expect(words).toContain("accuracy 0.912 share of examples always the most frequent answer: 0.600");
    expect(words).toContain("The request asked for no baseline");
  });
});

it("a model that reads words needs the library of tokenizers", () => {
  vi.stubGlobal("navigator", {}); // without a clipboard
  const result = found as unknown as Found;
  const markup = renderToStaticMarkup(<Model result={result} artifacts={[]} synthetic={false} />);
  vi.unstubAllGlobals();
  expect(markup).toContain("torch, safetensors and tokenizers are all it needs");
  expect(markup).toContain("pip install torch safetensors tokenizers");
});
