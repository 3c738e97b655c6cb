import { describe, expect, it } from "vitest";

import { suggested, wrongName } from "./name";
import { SpeedMeter } from "./upload";

describe("a name is suggested from the file's", () => {
  it.each([
    ["book.txt", "book"],
    ["My Book (final).txt", "my-book-final"],
    ["Überall – Öde.md", "uberall-ode"],
    ["…hidden", "hidden"],
    [".profile", "profile"],
    ["archive.v2.csv.gz", "archive.v2"],
    ["戦争と平和.txt", ""],
    ["a".repeat(100), "a".repeat(60)],
    [`${"a".repeat(59)}- b`, "a".repeat(59)],
    ["no_extension", "no_extension"],
  ])("%s", (file, name) => {
    expect(suggested(file)).toBe(name);
    if (name) expect(wrongName(name, [])).toBeNull();
  });

  it("that is not taken", () => {
    expect(suggested("book.txt", ["book", "book-2"])).toBe("book-3");
  });
});

it.each([
  ["", "a dataset needs a name"],
  ["python-docs", "python-docs is built in; take another name"],
  ["Book", "a name begins with a small letter or a digit"],
  ["-x", "a name begins with a small letter or a digit"],
  ["a b", "a name has small letters, digits, dots, dashes and underscores"],
  ["../etc", "a name begins with a small letter or a digit"],
  ["a/b", "a name has small letters, digits, dots, dashes and underscores"],
  ["a".repeat(65), "a name has at most 64 characters, not 65"],
  ["a".repeat(64), null],
  ["3.x_y-z", null],
])("the name %j: %s", (name, wrong) => {
  expect(wrongName(name, ["python-docs"])).toBe(wrong);
});

describe("the speed", () => {
  it("is that of the last seconds", () => {
    const meter = new SpeedMeter(3000);
    expect(meter.add(0, 0)).toBeNull();
    expect(meter.add(50, 100)).toBeNull();
    expect(meter.add(1000, 1000)).toBe(1000);
    for (let s = 2; s <= 10; s++) meter.add(1000, s * 1000); // stalled
    expect(meter.add(1000, 11_000)).toBe(0);
  });
});
