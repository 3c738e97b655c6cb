import { describe, expect, it } from "vitest";

import type { Card } from "../api/types";
import { labelBars, lengthBars, partsOf, percent, rowsWords } from "./card";

const card = (changes: Partial<Omit<Card, "settings">> & { settings?: Partial<Card["settings"]> }): Card => ({
  n_bytes: 1000,
  n_rows: 20,
  n_characters: 60,
  lengths: [],
  label_kind: null,
  labels: null,
  given_parts: null,
  part_rows: null,
  n_duplicates: 0,
  n_left_out: 0,
  samples: [],
  majority: null,
  ...changes,
  settings: {
    kind: "text",
    ends: null,
    corpus: null,
    dtype: null,
    vocab_size: null,
    eos_id: null,
    ...changes.settings,
  },
});

describe("the parts", () => {
  const sizes = (changes: Parameters<typeof card>[0]) => {
    const found = partsOf(card(changes));
    return found && [found.unit, found.given, ...found.parts.map((each) => each.n)];
  };
  it("of a text are 72, 18, 5 and 5 in a hundred bytes", () => {
    expect(sizes({})).toEqual(["bytes", false, 720, 180, 50, 50]);
    expect(partsOf(card({}))?.parts.map((each) => each.share)).toEqual([0.72, 0.18, 0.05, 0.05]);
  });
  it("of a text that came with parts are those, its training cut in 80 and 20", () => {
    expect(sizes({ settings: { ends: [900, 950] } })).toEqual(["bytes", true, 720, 180, 50, 50]);
  });
  it("of token ids are tokens, of documents what they were dealt", () => {
    expect(sizes({ n_rows: 200, settings: { kind: "tokens" } })).toEqual(["tokens", false, 144, 36, 10, 10]);
    const part_rows = { weights: 7, alpha: 2, validation: 1, test: 0 };
    expect(sizes({ part_rows, settings: { kind: "documents" } })).toEqual(["documents", false, 7, 2, 1, 0]);
    expect(sizes({ settings: { kind: "documents" } })).toBeNull();
    expect(sizes({ settings: { kind: "tokenizer" } })).toBeNull();
  });
});

describe("bars", () => {
  it("of lengths leave no gap", () => {
    const lengths: [number, number][] = [
      [1, 1],
      [2, 1],
      [16, 6],
      [32, 2],
    ];
    expect(lengthBars({ lengths }).map(({ name, n }) => [name, n])).toEqual([
      ["1", 1],
      ["2", 1],
      ["3 to 4", 0],
      ["5 to 8", 0],
      ["9 to 16", 6],
      ["17 to 32", 2],
    ]);
    expect(lengthBars({ lengths: [] })).toEqual([]);
  });
  it("of labels begin with the majority", () => {
    expect(labelBars({ no: 1, maybe: 1, yes: 3 }).map(({ name, share }) => [name, share])).toEqual([
      ["yes", 0.6],
      ["maybe", 0.2],
      ["no", 0.2],
    ]);
  });
});

it.each([
  [0, "0%"],
  [0.0004, "<0.1%"],
  [0.004, "0.4%"],
  [0.05, "5%"],
  [0.0521, "5.2%"],
  [0.72, "72%"],
  [1, "100%"],
])("a share of %d is %s", (share, words) => expect(percent(share)).toBe(words));

it.each([
  ["text", 1, "1 line"],
  ["documents", 12345, "12,345 documents"],
  ["tokenizer", 8192, "8,192 entries"],
] as const)("rows of %s", (kind, n_rows, words) => expect(rowsWords(card({ n_rows, settings: { kind } }))).toBe(words));
