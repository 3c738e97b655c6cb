/** What the pointed column holds, in numbers: each probability with its z, the lead, and what the block there buys. */

import { useLayoutEffect, useRef, useState } from "react";

import type { Look } from "../blocks";
import { fixed, signed } from "../ui/format";
import { AXIS, type Seen } from "./bands";
import type { Tried } from "./model/effects";
import { withinNoise } from "./model/evidence";
import type { SlotState } from "./model/leading";
import { Chip } from "./ui";

export function Readout({
  slot,
  left,
  top,
  column,
  room,
  short,
  bands,
  labels,
  look,
}: {
  slot: number;
  left: number;
  /** Under the cells of the first band: there the numbers go that the cells do not show. */
  top: number;
  column: number;
  room: number;
  /** Whether the cells show their numbers themselves. */
  short: boolean;
  bands: readonly Seen[];
  labels: readonly string[];
  look: (label: string) => Look;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(220);
  useLayoutEffect(() => setWidth(box.current?.offsetWidth ?? 220), [bands.length, short]);
  const at = left + 8 + width <= room ? left + 8 : left - column - 8 - width;
  const weighed = bands.some((each) => each.bought);
  const row = (name: string, say: (band: Seen) => string) => (
    <tr>
      <td>{name}</td>
      {bands.map((each) => (
        <td key={each.seed}>{say(each)}</td>
      ))}
    </tr>
  );
  return (
    <div
      ref={box}
      className={short ? "readout readout-short" : "readout"}
      style={{ transform: `translate(${Math.max(0, at)}px, ${short ? top : AXIS}px)` }}
      aria-hidden="true"
    >
      <table>
        <thead>
          <tr>
            <th scope="col">slot {slot + 1}</th>
            {bands.map((each) => (
              <th key={each.seed}>seed {each.seed}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(short ? [] : labels).map((label, index) => (
            <tr key={label}>
              <td>
                <span className="readout-block">
                  <Chip look={look(label)} /> {label}
                </span>
              </td>
              {bands.map(({ seed, frame, states }) => {
                const state = states[slot];
                const leads = state && !state.undecided && state.leader === index;
                const z = frame?.z?.[slot]?.[index];
                return (
                  <td key={seed} className={leads ? "leads" : withinNoise(z) ? "noise" : ""}>
                    {fixed(frame?.probabilities[slot]?.[index], 3)}
                    {z != null && <span className="readout-z"> z {fixed(z, 1)}</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
        <tbody className="readout-lead">
          {row("lead", ({ states }) => lead(states[slot]))}
          {row("chance", ({ states }) => fixed(states[slot]?.chance, 2))}
          {row("", ({ states }) => (states[slot] ? (states[slot].undecided ? "undecided" : "decided") : "–"))}
        </tbody>
        {weighed && (
          <tbody className="readout-lead">
            {row("keeps", ({ bought }) => bought?.[slot]?.label ?? "–")}
            {labels.map((label) =>
              bands.some(({ bought }) => triedAs(bought?.[slot]?.tried, label)) ? (
                <tr key={label}>
                  <td>with {label}</td>
                  {bands.map(({ seed, bought }) => (
                    <td key={seed}>{nats(triedAs(bought?.[slot]?.tried, label))}</td>
                  ))}
                </tr>
              ) : null,
            )}
          </tbody>
        )}
      </table>
    </div>
  );
}

const triedAs = (tried: readonly Tried[] | undefined, label: string) => tried?.find((each) => each.label === label);

const nats = (tried: Tried | undefined) =>
  tried ? `${signed(tried.nats, 3)}${tried.se === null ? "" : ` ± ${fixed(tried.se, 3)}`} nats` : "–";

const lead = (state: SlotState | undefined) => (state ? (Number.isFinite(state.gap) ? fixed(state.gap, 2) : "∞") : "–");
