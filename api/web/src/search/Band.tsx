/**
 * One seed's probabilities on the slot axis: candidates x slots, the lightness of the family's own colour, and under
 * them how far the leader of each slot is ahead, in multiples of the lead that chance alone reaches. What its gradient
 * or its lead does not vouch for is striped, and where a probability has room as a number its z stands with it.
 *
 * A canvas: 96 slots x 8 candidates x 8 seeds are redrawn within a frame while a search is followed or played.
 */

import { memo, useLayoutEffect, useRef } from "react";

import { inkOn, type Look } from "../blocks";
import { fixed } from "../ui/format";
import { withinNoise } from "./model/evidence";
import type { Frame } from "./model/frames";
import type { SlotState } from "./model/leading";
import { blend, token, useTheme } from "./theme";

export const LEAD_HEIGHT = 40;
const GAP = 6; // between the cells and the bars
/** Width of a column from which each cell shows its number, above its z; and from which they stand beside each other. */
const NUMBERS_FIT = 46;
const BESIDE_FIT = 98;
const TWO_LINES = 26; // height of a row that holds both above each other
const LETTERS_FIT = 10;

/** Height of a candidate's row, pixels. */
export const rowHeight = (candidates: number) =>
  candidates <= 5 ? 30 : candidates <= 7 ? 26 : candidates <= 10 ? 22 : 17;
/** Whether cells show numbers: none stands without its z. */
export const numbersFit = (column: number, candidates: number) =>
  column >= (rowHeight(candidates) >= TWO_LINES ? NUMBERS_FIT : BESIDE_FIT);
export const bandHeight = (candidates: number) => candidates * rowHeight(candidates) + GAP + LEAD_HEIGHT;

/** Leads are drawn as multiples of what chance reaches, up to this many; so the line of chance is one line. */
export const LEAD_TOP = 4;

interface Props {
  frame: Frame | null;
  states: readonly SlotState[];
  labels: readonly string[];
  look: (label: string) => Look;
  column: number;
  slots: number;
  title: string;
}

export const Band = memo(function Band({ frame, states, labels, look, column, slots, title }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const width = slots * column;
  const height = bandHeight(labels.length);

  useLayoutEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    // Beyond what browsers allow a canvas, sharpness gives way, not the picture.
    const ratio = Math.min(devicePixelRatio || 1, 16_000 / width);
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, { frame, states, labels, look, column, slots, title });
  }, [frame, states, labels, look, column, slots, title, width, height, theme]);

  return <canvas ref={canvas} style={{ width, height }} role="img" aria-label={title} />;
});

function draw(context: CanvasRenderingContext2D, { frame, states, labels, look, column, slots }: Props): void {
  const rows = rowHeight(labels.length);
  const ground = token("--cell");
  const gap = column >= 20 ? 2 : 1;
  const corner = column >= 20 ? 3 : 1;
  const numbers = numbersFit(column, labels.length);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const tops = labels.map((_, index) => index * rows);
  const seen = labels.map((label) => look(label));

  for (let slot = 0; slot < slots; slot++) {
    const state = states[slot];
    const row = frame?.probabilities[slot];
    const left = slot * column + gap / 2;
    const lead = state ? (row?.[state.leader] ?? 0) : 0;
    for (let index = 0; index < labels.length; index++) {
      const probability = row?.[index];
      const block = seen[index] as Look;
      const colour = probability == null ? ground : blend(ground, block.colour, probability);
      const top = tops[index] as number;
      context.fillStyle = colour;
      context.beginPath();
      context.roundRect(left, top + 1, column - gap, rows - 2, corner);
      context.fill();
      if (probability == null || !state) {
        if (row) text(context, "–", slot * column + column / 2, top + rows / 2, token("--ink-3"), 11);
        continue;
      }
      // The leader, or where nobody leads all that tie with it.
      const ties = state.undecided && probability > 0 && Math.log(lead / probability) <= state.chance;
      const named = state.undecided ? ties : index === state.leader;
      const ink = inkOn(colour);
      const middle = slot * column + column / 2;
      const z = frame?.z?.[slot]?.[index];
      if (state.undecided || withinNoise(z)) veil(context, left, top + 1, column - gap, rows - 2, ground);
      if (numbers) {
        const line = top + rows / 2 + 0.5;
        const weight = !named ? 450 : state.undecided ? 500 : 650;
        context.globalAlpha = named ? 1 : 0.72;
        if (named) text(context, block.letter, left + 10, line, ink, 12, 700, "--mono");
        const [x, shift] = z == null ? [middle + 7, 0] : column >= BESIDE_FIT ? [left + 38, 0] : [middle + 7, 5];
        text(context, fixed(probability, 3), x, line - shift, ink, 12, weight);
        if (z != null) text(context, `z ${fixed(z, 1)}`, shift ? x : left + column - 22, line + shift + 1, ink, 10);
        context.globalAlpha = 1;
      } else if (named && column >= LETTERS_FIT) {
        text(context, block.letter, middle, top + rows / 2 + 0.5, ink, Math.min(13, column - 1), 700, "--mono");
      }
    }
    if (state) drawLead(context, state, slot, seen[state.leader] as Look, labels.length * rows + GAP, column, gap);
  }
}

/** A bar as high as the lead is in multiples of chance's, and the line of chance: above it a slot is decided. */
function drawLead(
  context: CanvasRenderingContext2D,
  state: SlotState,
  slot: number,
  look: Look,
  top: number,
  column: number,
  gap: number,
): void {
  const left = slot * column + gap / 2;
  const width = column - gap;
  const floor = top + LEAD_HEIGHT - 1;
  const high = (multiple: number) => (Math.min(LEAD_TOP, multiple) / LEAD_TOP) * (LEAD_HEIGHT - 3);
  const bar = Math.max(
    state.gap > 0 ? 1 : 0,
    high(state.gap === 0 ? 0 : state.chance > 0 ? state.gap / state.chance : LEAD_TOP),
  );
  context.fillStyle = token("--line");
  context.fillRect(left, floor, width, 1);
  if (state.undecided) {
    context.fillStyle = token("--line-strong");
    hatch(context, left, floor - bar, width, bar);
  } else {
    context.fillStyle = look.colour;
    context.fillRect(left, floor - bar, width, bar);
  }
  const chance = Math.round(floor - high(1));
  context.fillStyle = token("--ink");
  context.fillRect(slot * column, chance - 1, column, 1.5);
}

function hatch(context: CanvasRenderingContext2D, left: number, top: number, width: number, height: number): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = context.fillStyle;
  context.lineWidth = 1.4;
  context.beginPath();
  for (let x = left - height; x < left + width + 4; x += 4.5) {
    context.moveTo(x, top + height + 1);
    context.lineTo(x + height + 2, top - 1);
  }
  context.stroke();
  context.strokeRect(left + 0.5, top + 0.5, width - 1, Math.max(0, height));
  context.restore();
}

/** Stripes of the ground over a cell: what it shows is not vouched for. */
function veil(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
  ground: string,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.globalAlpha = 0.5;
  context.strokeStyle = ground;
  context.lineWidth = 2;
  context.beginPath();
  for (let x = left - height; x < left + width; x += 6) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}

function text(
  context: CanvasRenderingContext2D,
  words: string,
  x: number,
  y: number,
  ink: string,
  size: number,
  weight = 450,
  family: "--mono" | "--font" = "--font",
): void {
  context.fillStyle = ink;
  context.font = `${weight} ${size}px ${family === "--mono" ? MONO : SANS}`;
  context.fillText(words, x, y);
}

const SANS =
  'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif';
const MONO = 'ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
