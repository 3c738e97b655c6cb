/**
 * What the service knows of a dataset's content (nas/ingest/card.py), and the figures that the page makes of it.
 */

import type { Card, Dataset } from "../api/types";
import { count } from "../ui/format";

/** One of the first rows: a text, perhaps with a pair and a label, or words with a label each. */
export interface Sample {
  text?: string;
  pair?: string;
  label?: string;
  words?: string[];
  labels?: string[];
  part?: string;
}

export const samplesOf = (card: Card) => card.samples as Sample[];

export const KIND_WORDS: Record<Dataset["kind"], string> = {
  text: "text",
  documents: "documents",
  tokens: "token ids",
  tokenizer: "tokenizer",
  synthetic: "synthetic task",
};

export const PARTS = ["weights", "alpha", "validation", "test"] as const;
export const PART_USE: Record<(typeof PARTS)[number], string> = {
  weights: "trains the blocks' weights",
  alpha: "trains the choice between them",
  validation: "watched while a search runs",
  test: "seen once, for the reported figures",
};
const ENDS_PERCENT = [72, 90, 95];
const TRAINING_PERCENT = 80; // of a training part that came with the data: weights, the rest alpha

export interface Part {
  name: (typeof PARTS)[number];
  n: number;
  share: number;
}

/** What the four parts hold, in the unit that they are cut in; null for what is not cut. */
export function partsOf(card: Card): { unit: string; given: boolean; parts: Part[] } | null {
  const { kind, ends } = card.settings;
  if (kind === "tokenizer") return null;
  if (kind === "documents") {
    const rows = card.part_rows;
    return rows && shared("documents", card.given_parts !== null, PARTS.map((name) => rows[name] ?? 0));
  }
  const n = kind === "tokens" ? card.n_rows : card.n_bytes;
  const starts = ends
    ? [Math.floor(((ends[0] ?? 0) * TRAINING_PERCENT) / 100), ...ends]
    : ENDS_PERCENT.map((percent) => Math.floor((n * percent) / 100));
  const bounds = [0, ...starts, n];
  return shared(
    kind === "tokens" ? "tokens" : "bytes",
    ends !== null,
    PARTS.map((_, at) => (bounds[at + 1] ?? 0) - (bounds[at] ?? 0)),
  );
}

function shared(unit: string, given: boolean, sizes: number[]) {
  const whole = sizes.reduce((sum, each) => sum + each, 0) || 1;
  const parts = PARTS.map((name, at) => ({ name, n: sizes[at] ?? 0, share: (sizes[at] ?? 0) / whole }));
  return { unit, given, parts };
}

const ROWS: Record<Card["settings"]["kind"], string> = {
  text: "line",
  documents: "document",
  tokens: "token",
  tokenizer: "entry",
};

/** "12,345 documents". */
export function rowsWords(card: Card): string {
  const noun = ROWS[card.settings.kind];
  const many = noun === "entry" ? "entries" : `${noun}s`;
  return `${count(card.n_rows)} ${card.n_rows === 1 ? noun : many}`;
}

export interface Bar {
  name: string;
  n: number;
  share: number;
}

/** Lengths as bars, none left out between the first and the last: "33 to 64". */
export function lengthBars(card: Pick<Card, "lengths">): Bar[] {
  const whole = card.lengths.reduce((sum, [, n = 0]) => sum + n, 0) || 1;
  const found: Bar[] = [];
  let before: number | null = null;
  for (const [most = 0, n = 0] of card.lengths) {
    for (let gap = before === null ? most : before * 2; gap < most; gap *= 2) found.push(lengthBar(gap, 0, whole));
    found.push(lengthBar(most, n, whole));
    before = Math.max(most, 1);
  }
  return found;
}

function lengthBar(most: number, n: number, whole: number): Bar {
  const least = Math.floor(most / 2) + 1;
  return { name: least >= most ? count(most) : `${count(least)} to ${count(most)}`, n, share: n / whole };
}

/** Labels, the most frequent first. */
export function labelBars(labels: Record<string, number>): Bar[] {
  const whole = Object.values(labels).reduce((sum, n) => sum + n, 0) || 1;
  return Object.entries(labels)
    .map(([name, n]) => ({ name, n, share: n / whole }))
    .sort((one, other) => other.n - one.n || (one.name < other.name ? -1 : 1));
}

/** "72%", "<1%", "0.4%": never 0 for something. */
export function percent(share: number): string {
  if (share === 0) return "0%";
  if (share < 0.001) return "<0.1%";
  const shown = share * 100;
  return `${shown.toFixed(shown < 10 && Math.abs(shown - Math.round(shown)) > 0.005 ? 1 : 0)}%`;
}
