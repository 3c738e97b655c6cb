import { describe, expect, it } from "vitest";
import { format, parse, placeFor } from "./json";

describe("parse", () => {
  it("reads what JSON.parse reads, with places by pointer", () => {
    const text = '{\n  "a": [1, -2.5e3, {"b~/c": "x\\u00e9"}],\n  "d": null, "e": true\n}';
    const parsed = parse(text);
    if (!parsed.ok) throw new Error(parsed.message);
    expect(parsed.value).toEqual(JSON.parse(text));
    expect(parsed.places.get("/a")).toEqual({ line: 2, column: 3 });
    expect(parsed.places.get("/a/1")).toEqual({ line: 2, column: 12 });
    expect(parsed.places.get("/a/2/b~0~1c")).toEqual({ line: 2, column: 21 });
    expect(parsed.places.get("/e")).toEqual({ line: 3, column: 14 });
  });

  it.each([
    ["", 1, 1, "expected a value, found the end"],
    ['{\n  "a": 1,\n}', 3, 1, 'expected a name in quotation marks, found "}"'],
    ['{\n  "a" 1\n}', 2, 7, 'expected ":" after the name "a", found "1"'],
    ['{"a": 1 "b": 2}', 1, 9, 'expected "," or "}", found a quotation mark'],
    ["[1 2]", 1, 4, 'expected "," or "]", found "2"'],
    ['{"a": 01}', 1, 8, 'expected a number, found "1" in it'],
    ['{"a": 1.}', 1, 8, 'expected a number, found "." in it'],
    ['{"a": NaN}', 1, 7, 'expected a value, found "N"'],
    ['{"a": 1e999}', 1, 7, "number 1e999 is out of range"],
    ['{"a": 1, "a": 2}', 1, 10, 'name "a" stands twice in one object'],
    ['{"a": "x\n"}', 1, 9, "a string ends on its own line; is a quotation mark missing?"],
    ['{"a": "x', 1, 7, "a string has no end; a quotation mark is missing"],
    ['{"a": "\\x"}', 1, 7, "a string holds an escape that JSON does not know"],
    ["{} x", 1, 4, 'expected the end, found "x"'],
    ["tru", 1, 1, 'expected a value, found "t"'],
    ["[".repeat(40), 1, 33, "nested deeper than 32 levels"],
  ])("refuses %j at line %d column %d", (text, line, column, message) => {
    expect(parse(text)).toEqual({ ok: false, message, place: { line, column } });
  });

  it("takes a name like __proto__ for what it is", () => {
    const parsed = parse('{"toString": 1, "__proto__": 2}');
    expect(parsed.ok && Object.keys(parsed.value as object)).toEqual(["toString", "__proto__"]);
  });
});

it("the place of a part that the text lacks is that of the innermost part it has", () => {
  const parsed = parse('{\n"space": {\n"n_slots": 0}}');
  if (!parsed.ok) throw new Error(parsed.message);
  expect(placeFor(parsed.places, "/space/n_slots")?.line).toBe(3);
  expect(placeFor(parsed.places, "/space/candidates/4")?.line).toBe(2);
  expect(placeFor(parsed.places, "/task/dataset")?.line).toBe(1);
});

describe("format", () => {
  const request = {
    name: "x",
    space: { n_slots: 2, candidates: [{ label: "a", block: "attention", options: { n_heads: null } }] },
    ranges: [],
    retrain: { baselines: ["interleaved"] },
  };

  it("gives a candidate a line and a field a line", () => {
    expect(format(request).split("\n")).toEqual([
      "{",
      '  "name": "x",',
      '  "space": {',
      '    "n_slots": 2,',
      '    "candidates": [{"label": "a", "block": "attention", "options": {"n_heads": null}}]',
      "  },",
      '  "ranges": [],',
      '  "retrain": {',
      '    "baselines": ["interleaved"]',
      "  }",
      "}",
    ]);
  });

  it("is read back as the same value", () => {
    const parsed = parse(format(request));
    expect(parsed.ok && parsed.value).toEqual(request);
  });
});
