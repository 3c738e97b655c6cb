/** Milliseconds of each slot by the latency table, on the slot axis. */

import type { CSSProperties } from "react";

import type { Look } from "../blocks";
import type { Costs } from "./model/cost";
import { milliseconds } from "./model/format";
import type { Frame } from "./model/frames";
import type { StripRow } from "./SlotRow";

/** Of an architecture, or as expected under the probabilities. */
export function CostRow({
  costs,
  labels,
  look,
  column,
  of,
  band,
}: {
  costs: Costs | null;
  labels: readonly string[];
  look: (label: string) => Look;
  column: number;
  of: StripRow | null;
  band: Frame | null;
}) {
  const msOf = (label: string | undefined) => costs?.slotMs[label ?? ""] ?? 0;
  const top = Math.max(...labels.map(msOf), 1e-9);
  const bars = !costs
    ? []
    : of?.labels
      ? of.labels.map((label) => ({ ms: msOf(label), colour: look(label).colour }))
      : (band?.probabilities ?? []).map((row) => ({
          ms: row.reduce<number>((sum, probability, index) => sum + (probability ?? 0) * msOf(labels[index]), 0),
          colour: "var(--line-strong)",
        }));
  const what = of ? `latency of each slot, ${of.name}` : "expected latency of each slot";
  return (
    <div className="picture-row cost-row">
      <div className="gutter gutter-lead" title={`${what}, by the latency table`}>
        <span>{of ? "cost" : "expected cost"}</span>
        <small>{costs ? `to ${milliseconds(top)}` : "not measured yet"}</small>
      </div>
      <div
        className="cost-bars"
        role="img"
        aria-label={`${what}: ${bars.map((bar) => milliseconds(bar.ms)).join(", ")}`}
      >
        {bars.map((bar, slot) => (
          <div
            key={slot}
            title={`slot ${slot + 1}: ${milliseconds(bar.ms)}`}
            style={{ width: column, "--high": bar.ms / top, "--colour": bar.colour } as CSSProperties}
          >
            <i />
          </div>
        ))}
      </div>
    </div>
  );
}
