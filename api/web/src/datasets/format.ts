/** What a file is, guessed from its name and its beginning, and how an upload says it to the service. */

export const FORMATS = ["text", "jsonl", "csv", "tsv", "parquet", "tokens", "tokenizer"] as const;
export type Format = (typeof FORMATS)[number];
export const COMPRESSIONS = ["none", "gzip", "zstd"] as const;
export type Compression = (typeof COMPRESSIONS)[number];

export const FORMAT_WORDS: Record<Format, string> = {
  text: "plain text",
  jsonl: "JSON lines",
  csv: "CSV, commas",
  tsv: "TSV, tabs",
  parquet: "Parquet",
  tokens: "token ids (.bin)",
  tokenizer: "tokenizer.json",
};

/** Published files whose splits are known by their name. */
export const CORPORA = ["enwik8", "text8"] as const;

/** What the form of an upload holds; numbers are kept as they are typed. */
export interface FormatDraft {
  format: Format;
  compression: Compression;
  /** Of a text: "" or a standard corpus. */
  corpus: string;
  /** Of records: one text a row, perhaps with a label, or words with a label each. */
  rows: "text" | "words";
  text: string;
  pair: string;
  label: string;
  words: string;
  labels: string;
  dtype: "uint16" | "uint32";
  vocab_size: string;
  eos_id: string;
}

const ENDINGS: Record<string, Format> = {
  jsonl: "jsonl",
  ndjson: "jsonl",
  csv: "csv",
  tsv: "tsv",
  tab: "tsv",
  parquet: "parquet",
  pq: "parquet",
  bin: "tokens",
};
const COMPRESSED: Record<string, Compression> = { gz: "gzip", gzip: "gzip", zst: "zstd", zstd: "zstd" };

export const isRecords = (format: Format) => ["jsonl", "csv", "tsv", "parquet"].includes(format);
/** Words with a label each are lists, which rows of CSV and TSV have not. */
export const hasLists = (format: Format) => ["jsonl", "parquet"].includes(format);
export const ofWords = ({ format, rows }: Pick<FormatDraft, "format" | "rows">) => hasLists(format) && rows === "words";

/** From the file's name, "reviews.csv.gz" is CSV within gzip, and from its first bytes where they tell. */
export function guess(fileName: string, head: Uint8Array = new Uint8Array()): FormatDraft {
  const parts = fileName.toLowerCase().split(".");
  const named = parts.length > 1 ? (COMPRESSED[parts.at(-1) ?? ""] ?? "none") : "none";
  if (named !== "none") parts.pop();
  const ending = parts.length > 1 ? (parts.at(-1) ?? "") : "";
  const stem = parts[0] ?? "";
  const plain = ENDINGS[ending] ?? (ending === "json" ? (stem.includes("tokenizer") ? "tokenizer" : "jsonl") : "text");
  const begins = (...bytes: number[]) => bytes.every((byte, at) => head[at] === byte);
  const found = begins(0x1f, 0x8b) ? "gzip" : begins(0x28, 0xb5, 0x2f, 0xfd) ? "zstd" : "none";
  const compression = head.length > 0 ? found : named;
  const format = begins(0x50, 0x41, 0x52, 0x31) ? "parquet" : plain; // "PAR1"
  const corpus = format === "text" ? (CORPORA.find((each) => each === stem) ?? "") : "";
  return {
    format,
    compression,
    corpus,
    rows: "text",
    text: "text",
    pair: "",
    label: "",
    words: "words",
    labels: "labels",
    dtype: "uint16",
    vocab_size: "",
    eos_id: "",
  };
}

/** The name without the endings that say what it is: "reviews.csv.gz" gives "reviews". */
export function stemOf(fileName: string): string {
  const plain = fileName.replace(/\.(gz|gzip|zst|zstd)$/i, "");
  return plain.replace(/\.[^.]{1,8}$/, "") || plain || fileName;
}

/** The columns that the first row tells, where the file's beginning can be read here. */
export function columnsOf({ format, compression }: Pick<FormatDraft, "format" | "compression">, head: string): string[] {
  const [line = ""] = head.replace(/^\ufeff/, "").split(/\r?\n/, 1);
  if (compression !== "none") return [];
  if (format === "csv" || format === "tsv") {
    const cells = line.split(format === "csv" ? "," : "\t").map((each) => each.trim().replace(/^"(.*)"$/, "$1"));
    return cells.some((each) => each !== "") ? cells : [];
  }
  if (format !== "jsonl") return [];
  try {
    const row: unknown = JSON.parse(line);
    return row !== null && typeof row === "object" && !Array.isArray(row) ? Object.keys(row) : [];
  } catch {
    return []; // the row is longer than what was read, or no JSON: the service says which
  }
}

const USUAL = {
  text: ["text", "sentence", "sentence1", "content", "document", "review", "body"],
  pair: ["pair", "sentence2"],
  label: ["label"],
  words: ["words", "tokens"],
  labels: ["labels", "ner_tags", "pos_tags", "tags"],
} as const;
export type Field = keyof typeof USUAL;

/** The draft with the usual columns among these in their places. */
export function withColumns(draft: FormatDraft, columns: readonly string[]): FormatDraft {
  if (columns.length === 0) return draft;
  const usual = (field: Field) => USUAL[field].find((each) => columns.includes(each));
  const text = usual("text");
  const words = text === undefined && hasLists(draft.format) ? usual("words") : undefined;
  if (words !== undefined) return { ...draft, rows: "words", words, labels: usual("labels") ?? draft.labels };
  return { ...draft, text: text ?? columns[0] ?? "text", pair: usual("pair") ?? "", label: usual("label") ?? "" };
}

/** What is wrong with the draft; null where the service may take it. */
export function wrongFormat(draft: FormatDraft): string | null {
  if (isRecords(draft.format)) {
    const fields = (ofWords(draft) ? [draft.words, draft.labels] : [draft.text || "text", draft.pair, draft.label])
      .map((each) => each.trim())
      .filter((each) => each !== "");
    if (ofWords(draft) && fields.length < 2) return "which fields hold the words and their labels?";
    const twice = fields.find((each, at) => fields.indexOf(each) < at);
    return twice === undefined ? null : `field ${twice} cannot be two things`;
  }
  if (draft.format !== "tokens") return null;
  const size = wholeNumber(draft.vocab_size);
  const most = draft.dtype === "uint16" ? 2 ** 16 : 2 ** 32;
  if (size === null || size < 2) return "how large is the vocabulary? all ids are below it";
  if (size > most) return `${draft.dtype} holds ids below ${most}, so the vocabulary cannot have ${size}`;
  if (draft.eos_id.trim() === "") return null;
  const eos = wholeNumber(draft.eos_id);
  return eos === null || eos >= size ? `the id that ends a document must be below ${size}, or left out` : null;
}

function wholeNumber(text: string): number | null {
  return /^\d{1,12}$/.test(text.trim()) ? Number(text) : null;
}

/** The query of the upload: only what the format knows, and nothing that is left at its default. */
export function queryOf(name: string, fileName: string, draft: FormatDraft): URLSearchParams {
  const { format, compression } = draft;
  const query = new URLSearchParams({ name, file: fileName, format, compression });
  const put = (key: string, value: string) => {
    if (value.trim() !== "") query.set(key, value.trim());
  };
  if (format === "text") put("corpus", draft.corpus);
  if (isRecords(format)) {
    const fields: Field[] = ofWords(draft) ? ["words", "labels"] : ["text", "pair", "label"];
    for (const field of fields) put(field, draft[field]);
  }
  if (format === "tokens") {
    put("dtype", draft.dtype);
    put("vocab_size", draft.vocab_size);
    put("eos_id", draft.eos_id);
  }
  return query;
}
