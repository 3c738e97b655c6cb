import { expect, test } from "vitest";

import type { Catalog } from "./api/types";
import { blockOfLabels, inkOn, lookOf, looks } from "./blocks";

const block = (name: string, letter: string, colour: string) => ({
  name,
  description: "",
  family: name,
  letter,
  colour,
  options: {},
});
const catalog = {
  blocks: [block("attention", "A", "#4477AA"), block("ffn", "F", "#CCBB44"), block("identity", ".", "#BBBBBB")],
} as unknown as Catalog;

test("a label may be any name: its block says how it looks", () => {
  const request = {
    space: { candidates: ["ffn", { label: "wide", block: "attention", options: {} }, { block: "identity" }] },
  };
  expect(blockOfLabels(request)).toEqual({ ffn: "ffn", wide: "attention", identity: "identity" });
  expect(looks(catalog, request)("wide").letter).toBe("A");
});

test("a block that nobody knows, or a catalog that is not here yet, has a neutral look", () => {
  expect(lookOf(catalog, "conv").letter).toBe("?");
  expect(lookOf(undefined, "ffn").letter).toBe("?");
});

test("the dot of identity stands at half height", () => expect(lookOf(catalog, "identity").letter).toBe("·"));

test.each([
  ["#4477AA", "#ffffff"],
  ["#CCBB44", "#111111"],
  ["#BBBBBB", "#111111"],
  ["#AA3377", "#ffffff"],
])("on %s the letter is %s", (colour, ink) => expect(inkOn(colour)).toBe(ink));
