/**
 * What the block of each slot buys, on the slot axis: nats of held-out loss with their standard error, and beside them
 * the milliseconds that it takes, against leaving it out. Where something cheaper ties, the bar is hatched.
 */

import { memo, useId } from "react";

import type { Look } from "../blocks";
import { fixed } from "../ui/format";
import { type Bought, boughtWords, natsSpan, REFERS } from "./model/effects";
import { milliseconds } from "./model/format";

interface Props {
  seed: number;
  /** null: no comparison has been told yet. */
  bought: readonly Bought[] | null;
  look: (label: string) => Look;
  column: number;
  slots: number;
  /** What stands in the row's place until there is one. */
  waiting: string;
}

const HIGH = 52; // of the bars
const WORDS = 16; // under them
/** Width of a column from which its nats stand under its bars; and from which its milliseconds do. */
const NATS_FIT = 40;
const BOTH_FIT = 110;

export const Buys = memo(function Buys({ seed, bought, look, column, slots, waiting }: Props) {
  const hatch = useId();
  const [low, high] = natsSpan(bought ?? []);
  const y = (nats: number) => 3 + ((high - nats) / (high - low)) * (HIGH - 6);
  const most = Math.max(...(bought ?? []).map(({ ms }) => ms ?? 0), 0);
  const width = slots * column;
  return (
    <div className="picture-row buys-row">
      <div className="gutter gutter-lead" title={`What held-out loss rises by without the block of each slot, left, and the milliseconds that it takes, right. ${REFERS}`}>
        <span>buys</span>
        <small>{bought ? `to ${fixed(high, 3)} nats` : "\u00a0"}</small>
        <small>{bought && most > 0 ? `to ${milliseconds(most)}` : "\u00a0"}</small>
      </div>
      <svg
        className="buys"
        width={width}
        height={HIGH + WORDS}
        role="img"
        aria-label={`what each block buys, seed ${seed}: ${bought ? bought.map(boughtWords).join("; ") : waiting}`}
      >
        <defs>
          <pattern id={hatch} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect className="buys-stripe" width="2" height="5" />
          </pattern>
        </defs>
        <line className="buys-zero" x1="0" x2={width} y1={y(0)} y2={y(0)} />
        {bought?.map((each, slot) => (
          <Slot
            key={slot}
            {...{ each, column, y, hatch }}
            left={slot * column}
            colour={look(each.label).colour}
            msHigh={most > 0 && each.ms !== null && each.ms > 0 ? (each.ms / most) * (HIGH - 6) : 0}
          />
        ))}
        {!bought && (
          <text x={Math.min(width, 560) / 2} y={HIGH / 2 + 4}>
            {waiting}
          </text>
        )}
      </svg>
    </div>
  );
});

function Slot({
  each,
  left,
  column,
  colour,
  hatch,
  y,
  msHigh,
}: {
  each: Bought;
  left: number;
  column: number;
  colour: string;
  hatch: string;
  y: (nats: number) => number;
  msHigh: number;
}) {
  const { against, tied } = each;
  const gap = column >= 20 ? 3 : 0.5;
  const half = (column - 2 * gap) / 2;
  const nats = against?.nats ?? 0;
  const bar = { x: left + gap, width: half - 0.5, y: Math.min(y(nats), y(0)), height: Math.abs(y(nats) - y(0)) };
  const middle = bar.x + bar.width / 2;
  const se = against?.se ?? null;
  return (
    <g>
      <title>{boughtWords(each, Math.round(left / column))}</title>
      <rect className="buys-column" x={left} y="0" width={column} height={HIGH + WORDS} />
      {against && <rect {...bar} fill={colour} />}
      {tied && (
        <rect className="buys-tied" x={bar.x} width={bar.width} y="2" height={HIGH - 4} fill={`url(#${hatch})`} />
      )}
      {against && se !== null && (
        <path
          className="buys-whisker"
          d={`M${middle} ${y(nats - se)}V${y(nats + se)}M${middle - 3} ${y(nats - se)}h6M${middle - 3} ${y(nats + se)}h6`}
        />
      )}
      {msHigh > 0 && (
        <rect className="buys-ms" x={left + gap + half + 0.5} width={half - 0.5} y={y(0) - Math.min(msHigh, y(0))} height={Math.min(msHigh, y(0))} />
      )}
      {column >= NATS_FIT && (
        <text x={left + column / 2} y={HIGH + 12}>
          {against ? fixed(nats, 3) : "–"}
          {column >= BOTH_FIT && each.ms !== null && ` · ${milliseconds(each.ms)}`}
        </text>
      )}
    </g>
  );
}
