/** What stands in a plot beside its curves: bounds, phases, the step that is shown, and where something was found. */

import type uPlot from "uplot";

import type { Span } from "./model/phases";
import { token } from "./theme";

/** A level that curves are read against. */
export interface Mark {
  y: number;
  label: string;
}

const FONT = "px system-ui, sans-serif";

export function drawMark(self: uPlot, mark: Mark): void {
  const { ctx, bbox } = self;
  const y = Math.round(self.valToPos(mark.y, "y", true)) + 0.5;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = token("--ink-2");
  ctx.fillStyle = token("--ink-2");
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = `${11 * ratio}${FONT}`;
  ctx.textAlign = "right";
  const below = y - bbox.top < 16 * ratio;
  ctx.textBaseline = below ? "top" : "bottom";
  ctx.fillText(mark.label, bbox.left + bbox.width - 2 * ratio, y + (below ? 3 : -3) * ratio);
  ctx.restore();
}

export function drawStep(self: uPlot, step: number): void {
  const { ctx, bbox } = self;
  const x = Math.round(self.valToPos(step, "x", true)) + 0.5;
  ctx.save();
  ctx.strokeStyle = token("--accent");
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** Every second phase on a shade, each with its name where it has room. */
export function drawSpans(self: uPlot, spans: readonly Span[]): void {
  const { ctx, bbox } = self;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${10.5 * ratio}${FONT}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  spans.forEach(({ phase, from, to }, at) => {
    const left = Math.max(bbox.left, self.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, self.valToPos(to, "x", true));
    if (right <= left) return;
    if (at % 2 === 0) {
      ctx.fillStyle = token("--sunken");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.fillStyle = token("--ink-3");
    if (ctx.measureText(phase).width + 6 * ratio <= right - left) ctx.fillText(phase, left + 3 * ratio, bbox.top + 2 * ratio);
  });
  ctx.restore();
}

/** A triangle on the axis of steps. */
export function drawNote(self: uPlot, step: number): void {
  const { ctx, bbox } = self;
  const ratio = devicePixelRatio;
  const x = self.valToPos(step, "x", true);
  const floor = bbox.top + bbox.height;
  ctx.save();
  ctx.fillStyle = token("--warn");
  ctx.beginPath();
  ctx.moveTo(x - 5 * ratio, floor);
  ctx.lineTo(x + 5 * ratio, floor);
  ctx.lineTo(x, floor - 8 * ratio);
  ctx.fill();
  ctx.restore();
}
