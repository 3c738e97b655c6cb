import { describe, expect, it } from "vitest";

import { columnsOf, guess, queryOf, stemOf, withColumns, wrongFormat, type FormatDraft } from "./format";

describe("a file's name tells what it is", () => {
  it.each([
    ["book.txt", "text", "none", ""],
    ["Book.MD", "text", "none", ""],
    ["no_extension", "text", "none", ""],
    ["gz", "text", "none", ""],
    ["enwik8", "text", "none", "enwik8"],
    ["text8.gz", "text", "gzip", "text8"],
    ["text8.notes.csv", "csv", "none", ""],
    ["reviews.jsonl", "jsonl", "none", ""],
    ["reviews.v2.ndjson.zst", "jsonl", "zstd", ""],
    ["reviews.json", "jsonl", "none", ""],
    ["reviews.CSV.GZ", "csv", "gzip", ""],
    ["msr.tsv", "tsv", "none", ""],
    ["train-00000-of-00001.parquet", "parquet", "none", ""],
    ["train.bin", "tokens", "none", ""],
    ["tokenizer.json", "tokenizer", "none", ""],
    ["my-tokenizer.json.gz", "tokenizer", "gzip", ""],
  ])("%s is %s, %s", (file, format, compression, corpus) => {
    expect(guess(file)).toMatchObject({ format, compression, corpus });
  });

  it.each([
    ["log.txt", [0x1f, 0x8b, 8], "text", "gzip"],
    ["log.csv", [0x28, 0xb5, 0x2f, 0xfd], "csv", "zstd"],
    ["log.gz", [0x68, 0x69], "text", "none"],
    ["rows", [0x50, 0x41, 0x52, 0x31], "parquet", "none"],
  ])("unless %s begins with %j: then it is %s, %s", (file, head, format, compression) => {
    expect(guess(file, new Uint8Array(head))).toMatchObject({ format, compression });
  });

  it.each([
    ["reviews.csv.gz", "reviews"],
    ["a.b.txt", "a.b"],
    [".gz", ".gz"],
    ["plain", "plain"],
  ])("%s without it is %s", (file, stem) => expect(stemOf(file)).toBe(stem));
});

describe("the first row tells the columns", () => {
  const draft = (file: string) => guess(file);
  it.each([
    ["a.jsonl", '{"sentence": "x", "label": 1}\n{"sentence"', ["sentence", "label"]],
    ["a.jsonl", '{"sentence": "no end', []],
    ["a.jsonl", "[1, 2]\n", []],
    ["a.csv", '\ufeff"id", text,label\r\n1,a,b', ["id", "text", "label"]],
    ["a.tsv", "sentence\tlabel\n", ["sentence", "label"]],
    ["a.csv", "", []],
    ["a.csv.gz", "id,text\n", []],
    ["a.txt", "id,text\n", []],
    ["a.parquet", "PAR1", []],
  ])("%s %j has %j", (file, head, columns) => expect(columnsOf(draft(file), head)).toEqual(columns));

  it.each([
    ["a.tsv", ["id", "sentence", "label"], { rows: "text", text: "sentence", pair: "", label: "label" }],
    ["a.tsv", ["sentence1", "sentence2", "label"], { text: "sentence1", pair: "sentence2", label: "label" }],
    ["a.csv", ["remark", "stars"], { text: "remark", label: "" }],
    ["a.jsonl", ["tokens", "ner_tags"], { rows: "words", words: "tokens", labels: "ner_tags" }],
    ["a.jsonl", ["text", "tokens"], { rows: "text", text: "text" }],
    ["a.csv", [], { rows: "text", text: "text" }],
  ])("of %s with %j the usual ones are put in place", (file, columns, found) => {
    expect(withColumns(guess(file), columns)).toMatchObject(found);
  });
});

describe("the query", () => {
  const said = (draft: Partial<FormatDraft>) =>
    Object.fromEntries(queryOf("x", "f", { ...guess("f"), ...draft }).entries());
  const base = { name: "x", file: "f", compression: "none" };

  it("says nothing that the format does not know", () => {
    const full = { text: "body", pair: " other ", label: "", vocab_size: "9", corpus: "text8" };
    expect(said({ ...full, format: "text" })).toEqual({ ...base, format: "text", corpus: "text8" });
    expect(said({ ...full, format: "csv" })).toEqual({ ...base, format: "csv", text: "body", pair: "other" });
    expect(said({ ...full, format: "jsonl", rows: "words", words: "w", labels: "l" })).toEqual({
      ...base,
      format: "jsonl",
      words: "w",
      labels: "l",
    });
    expect(said({ ...full, format: "tokens", eos_id: "0" })).toEqual({
      ...base,
      format: "tokens",
      dtype: "uint16",
      vocab_size: "9",
      eos_id: "0",
    });
    expect(said({ ...full, format: "tokenizer", compression: "zstd" })).toEqual({
      ...base,
      format: "tokenizer",
      compression: "zstd",
    });
  });
});

it.each([
  [{ format: "text", text: "" }, null],
  [{ format: "csv", text: " " }, null],
  [{ format: "csv", text: "a", label: "a" }, "field a cannot be two things"],
  [{ format: "csv", text: "", pair: "text" }, "field text cannot be two things"],
  [{ format: "csv", rows: "words", labels: "" }, null],
  [{ format: "jsonl", rows: "words", labels: "" }, /words and their labels/],
  [{ format: "tokens" }, /how large is the vocabulary/],
  [{ format: "tokens", vocab_size: "1e3" }, /how large is the vocabulary/],
  [{ format: "tokens", vocab_size: "65536" }, null],
  [{ format: "tokens", vocab_size: "65537" }, "uint16 holds ids below 65536, so the vocabulary cannot have 65537"],
  [{ format: "tokens", vocab_size: "65537", dtype: "uint32" }, null],
  [{ format: "tokens", vocab_size: "9", eos_id: "9" }, /must be below 9/],
  [{ format: "tokens", vocab_size: "9", eos_id: "8" }, null],
] as const)("%j: %s", (changes, wrong) => {
  const found = wrongFormat({ ...guess("f"), ...changes } as FormatDraft);
  if (wrong instanceof RegExp) expect(found).toMatch(wrong);
  else expect(found).toBe(wrong);
});
