/** What the result says, with the units that the service tells. */

import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it, vi } from "vitest";

import type { Result as Found } from "../api/types";
import { Model } from "./Model";
import { Result } from "./Result";

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

  it("says which layout to take, where the service does", () => {
    const sentence = "Take layout sandwich, not what was derived: it is better by 0.075 bits per byte (0.045 to 0.105).";
    expect(drawn({ advice: { take: "sandwich", sentence } })).toContain(sentence);
    expect(drawn({ advice: null })).not.toContain("Take");
  });

  it("says which trials max_minutes ended, and nothing where none was", () => {
    const line = "trial retrain-0-0: the retraining ended after 1 of 6 weight updates: max_minutes is 60";
    const words = drawn({ cut_short: [line] }).replaceAll(/\s+/g, " ");
    expect(words).toContain(`Time was up before these had come to their end: ${line}`);
    expect(drawn({})).not.toContain("Time was up");
  });

  it("says what the field goes by beside it, and what costs nothing", () => {
    const words = drawn({}).replaceAll(/\s+/g, " ");
    expect(words).toContain("in accuracy share of examples; more is better; always the most frequent answer: 0.600 0.912 0.871");
    expect(words).toContain("+0.041 mean of the seeds; no interval"); // of an older version
    expect(words.match(/bits per label/g)).toHaveLength(3); // once a cell: not again among the metrics
  });

  it("tells how sure a difference of the field's figures is", () => {
    const [bits, accuracy] = found.metrics;
    const metrics = [bits, { ...accuracy, difference: 0.041, low: -0.003, high: 0.085 }];
    expect(drawn({ metrics }).replaceAll(/\s+/g, " ")).toMatch(/\+0\.041 .*−0\.003 to \+0\.085, over seeds/);
    const small = [bits, { ...accuracy, difference: 0.0002, low: 0.0001, high: 0.0003 }];
    expect(drawn({ metrics: small })).toContain("+0.00010 to +0.00030, over seeds");
  });

  it("does not tell a small difference as 0", () => {
    const quality = { ...found.quality, difference: -0.00012, low: -0.0002, high: -0.00004 };
    expect(drawn({ quality })).toContain("−0.00020 to −0.00004");
  });

  it("counts examples where they have labels, else windows of a text", () => {
    expect(drawn({})).toContain("90 examples");
    expect(drawn({ search: { ...found.search, objective: "causal_lm" } })).toContain("90 windows");
  });

  it("has a row for each serve mode, and says what is held against it", () => {
    const timed = { ratio: 0.8, low: 0.75, high: 0.85, repeatability: 0.02, derived_ms: 4, parent_ms: 5 };
    const serve = { mode: "decode", batch: 1, query_length: 64, memory_length: 32 };
    const latencies = [{ ...timed, serve: { ...serve, mode: "prefill" } }, { ...timed, high: 1.1, serve }];
    const words = drawn({ latency: timed, latencies, parent: { ...architecture, role: "present" } });
    expect(words).toMatch(/prefill, batch 1 × 64 tokens, 32 in memory/);
    expect(words).toMatch(/decode, batch 1/);
    expect(words).toMatch(/faster[^]*cannot tell/);
    expect(words).toContain("where the present model has");
  });

  it("tells each bound, with what was predicted, measured and come to", () => {
    const bound = { name: "latency", unit: "of the parent", target: 1, predicted: 0.7, expected: 0.9 };
    const bounds = [
      { ...bound, measured: 1.2, low: 1.1, high: 1.3, verdict: "over" },
      { ...bound, name: "cache_bytes", unit: "bytes", measured: null, low: null, high: null, verdict: "within" },
    ];
    const words = drawn({ derived: { ...architecture, bounds } }).replaceAll(/\s+/g, " ");
    expect(words).toContain("latency of the parent 1.000 0.900 0.700 1.200");
    expect(words).toContain("1.100 to 1.300 over");
    expect(words).toContain("counted within");
  });

  it("tells quality at other lengths, and why there is none", () => {
    const score = { bits: 2.5, se: 0.01, why: null };
    const why = { bits: null, se: null, why: "candidate 'sgu' cannot run there" };
    const difference = { bits: -0.02, low: -0.03, high: -0.01, verdict: "better" };
    const lengths = [
      { length: 32, unit: "bits per byte", derived: score, parent: { ...score, bits: 2.52 }, difference },
      { length: 512, unit: "bits per byte", derived: why, parent: score, difference: null },
    ];
    const search = { ...found.search, train_length: 128 };
    const words = drawn({ lengths, search }).replaceAll(/\s+/g, " ");
    expect(words).toContain("32 1/4 of trained 2.500 ± 0.010 2.520 ± 0.010 −0.020");
    expect(words).toMatch(/512 4 × trained none: candidate .*sgu.* cannot run there/);
  });

  it("holds the derived layout against each other one, and says what few seeds cannot show", () => {
    const layout = { name: "derived", slots: ["attention", "ffn"], seeds: [0, 1, 2], mean: 2.4 };
    const retrained = [layout, { ...layout, name: "par", mean: 2.45 }, { ...layout, name: "random 1", mean: 2.41 }];
    const compared = { first: "derived", unit: "bits per byte", n_seeds: 3, detectable: 0.034, latency: { ratio: 0.8 } };
    const comparisons = [
      { ...compared, second: "par", difference: -0.05, low: -0.06, high: -0.04, verdict: "better" },
      { ...compared, second: "random 1", difference: -0.01, low: -0.05, high: 0.03, verdict: "cannot tell" },
    ];
    const power = [{ message: "retraining: 3 paired seeds show a difference from 0.03 bits per byte on" }];
    const words = drawn({ retrained, comparisons, power }).replaceAll(/\s+/g, " ");
    expect(words).toMatch(/par 3 seeds .*2\.450 −0\.050 .* better .*0\.800 of its/);
    expect(words).toMatch(/random 1 3 seeds .*cannot tell 0\.034 or more would be seen 8 times in 10/);
    expect(words).toContain("Told before it ran: retraining: 3 paired seeds show");
    expect(words).not.toContain("so the rule");
    const one = comparisons.map((each) => ({ ...each, n_seeds: 1, detectable: null }));
    expect(drawn({ retrained, comparisons: one })).toContain("one seed: the interval is of the windows alone");
  });

  it("holds the layout of the rules against what they were confirmed by, in a table of its own", () => {
    const layout = { slots: ["attention", "ffn"], seeds: [6, 7, 8], mean: 2.4 };
    const names = ["derived", "par", "rule", "rule random 1", "rule parent"];
    const retrained = names.map((name) => ({ ...layout, name }));
    const compared = { unit: "bits per byte", n_seeds: 3, detectable: 0.03, low: -0.06, high: -0.04, latency: null };
    const comparisons = [
      { ...compared, first: "derived", second: "par", difference: -0.05, verdict: "better" },
      { ...compared, first: "rule", second: "rule random 1", difference: -0.07, verdict: "better" },
      { ...compared, first: "rule", second: "rule parent", difference: -0.08, verdict: "better" },
    ];
    const words = drawn({ retrained, comparisons }).replaceAll(/\s+/g, " ");
    expect(words).toMatch(/so derived is.* par 3 seeds .*−0\.050.*so the rule.*s layout is.*rule random 1 3 seeds .*−0\.070.*rule parent/);
    expect(words.match(/rule parent 3 seeds/g)).toHaveLength(1);
  });

  it("says which setting won, and lists all", () => {
    const sample = { sample: 0, values: { "/method/lr": 0.00123456 }, state: "succeeded", reason: null, seeds: [0] };
    const samples = [
      { ...sample, losses: [1.5], loss: 1.5, sd: 0.01, cost: null },
      { ...sample, sample: 1, state: "pruned", reason: "behind at step 9", losses: [], loss: null, sd: null, cost: null },
    ];
    const winner = { sample: 0, sentence: "sample 0 (lr 0.00123) is the only one of 2 samples that came to its end" };
    const words = drawn({ samples, winner }).replaceAll(/\s+/g, " ");
    expect(words).toContain("Sample 0 (lr 0.00123) is the only one of 2 samples that came to its end.");
    expect(words).toContain("0 0.00123 1.5000 ± 0.0100 succeeded (won)");
    expect(words).toContain("pruned: behind at step 9");
  });

  it("of an older service lacks those parts, and nothing else", () => {
    const words = drawn({});
    for (const part of ["Budget", "Against each layout", "At other lengths", "Settings that were tried"]) expect(words).not.toContain(part);
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
