/** Everything of a search that has a slot, on one shared axis: slot i stands in the same column of every row. */

import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import type { Look } from "../blocks";
import { fixed } from "../ui/format";
import { BlankStrip, Strip } from "../ui/Strip";
import { Band, bandHeight, LEAD_HEIGHT, NUMBERS_FIT, rowHeight } from "./Band";
import { columnWidth, GUTTER, isNumbered, numberEvery, slotAt } from "./model/columns";
import type { Costs } from "./model/cost";
import { milliseconds } from "./model/format";
import type { Frame } from "./model/frames";
import { decidedCount, type SlotState, slotStates } from "./model/leading";
import { Chip } from "./ui";

export interface SeedBand {
  seed: number;
  frame: Frame | null;
}

export interface StripRow {
  key: string;
  name: string;
  title: string;
  /** null: not derived yet. */
  labels: readonly string[] | null;
  undecided: readonly number[];
  strong?: boolean;
}

interface Props {
  labels: readonly string[];
  look: (label: string) => Look;
  slots: number;
  bands: readonly SeedBand[];
  strips: readonly StripRow[];
  costs: Costs | null;
  /** What the bars of cost stand for: labels of an architecture; null: the expectation of the first band. */
  costOf: StripRow | null;
  pinned: number | null;
  onPin: (slot: number | null) => void;
  empty: string;
}

/** Of a leading strip: an undecided slot names no block, not even the first of a tie. */
const OPEN = "";
const AXIS = 28; // height of the axis and of a band's name, with the gap under it

export const Picture = memo(function Picture({
  labels,
  look,
  slots,
  bands,
  strips,
  costs,
  costOf,
  pinned,
  onPin,
  empty,
}: Props) {
  const scroll = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const [available, setAvailable] = useState(560);
  const [hovered, setHovered] = useState<number | null>(null);
  const [keyed, setKeyed] = useState(false);

  useLayoutEffect(() => {
    const element = scroll.current;
    if (!element) return;
    const measure = () => setAvailable(element.clientWidth - GUTTER);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const column = columnWidth(available, slots);
  const every = numberEvery(column, slots);
  const axis = slots * column;
  const active = hovered ?? (keyed ? pinned : null);
  const seen = useMemo(
    () => bands.map((band) => ({ ...band, states: band.frame ? slotStates(band.frame) : [] })),
    [bands],
  );

  const point = (event: PointerEvent) => {
    const left = grid.current?.getBoundingClientRect().left ?? 0;
    const edge = scroll.current?.getBoundingClientRect().left ?? 0;
    // What has scrolled under the names is not pointed at.
    return event.clientX < edge + GUTTER ? null : slotAt(event.clientX - left - GUTTER, column, slots);
  };
  const reveal = (slot: number) => {
    const element = scroll.current;
    if (!element) return;
    const left = slot * column;
    if (left < element.scrollLeft) element.scrollLeft = left - column;
    else if (left + column > element.scrollLeft + available) element.scrollLeft = left + 2 * column - available;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = active ?? pinned;
    const to = {
      ArrowRight: at === null ? 0 : Math.min(slots - 1, at + 1),
      ArrowLeft: at === null ? slots - 1 : Math.max(0, at - 1),
      Home: 0,
      End: slots - 1,
    }[event.key];
    if (to !== undefined) {
      if (pinned === null) setHovered(to);
      else onPin(to);
      setKeyed(true);
      reveal(to);
    } else if ((event.key === "Enter" || event.key === " ") && at !== null) onPin(pinned === at ? null : at);
    else if (event.key === "Escape") {
      setHovered(null);
      onPin(null);
    } else return;
    event.preventDefault();
  };

  const spoken = active ?? pinned;
  const width = GUTTER + axis;
  return (
    <div className="picture-frame">
      <div className="picture" ref={scroll}>
        <div
          className="picture-grid"
          ref={grid}
          style={{ width, "--gutter": `${GUTTER}px`, "--axis": `${axis}px` } as CSSProperties}
          onPointerMove={(event) => event.pointerType !== "touch" && setHovered(point(event))}
          onPointerLeave={() => setHovered(null)}
          onClick={(event) => {
            const slot = point(event as unknown as PointerEvent);
            if (slot !== null) onPin(slot === pinned ? null : slot);
          }}
        >
          {pinned !== null && <Column slot={pinned} column={column} kind="pinned" />}
          {active !== null && active !== pinned && <Column slot={active} column={column} kind="hovered" />}

          <div className="picture-row">
            <div className="gutter quieter">slot</div>
            <div
              className="axis"
              role="slider"
              tabIndex={0}
              aria-label="slot; Enter opens its history"
              aria-valuemin={1}
              aria-valuemax={slots}
              aria-valuenow={(spoken ?? 0) + 1}
              aria-valuetext={spoken === null ? "no slot" : said(spoken, seen, labels)}
              onKeyDown={onKeyDown}
              onFocus={(event) => event.target.matches(":focus-visible") && setKeyed(true)}
              onBlur={() => {
                setKeyed(false);
                setHovered(null);
              }}
            >
              {Array.from({ length: slots }, (_, slot) =>
                isNumbered(slot, every) ? (
                  <span
                    key={slot}
                    style={{ left: slot * column, width: column }}
                    data-on={slot === active || slot === pinned}
                  >
                    {slot + 1}
                  </span>
                ) : null,
              )}
            </div>
          </div>

          {seen.map(({ seed, frame, states }) => (
            <div key={seed} className="band">
              {seen.length > 1 && (
                <div className="picture-row">
                  <div className="gutter band-name">seed {seed}</div>
                </div>
              )}
              <div className="picture-row" style={{ height: bandHeight(labels.length) }}>
                <div className={`gutter gutter-labels ${rowHeight(labels.length) < 20 ? "gutter-low" : ""}`}>
                  {labels.map((label) => (
                    <div key={label} style={{ height: rowHeight(labels.length) }} title={label}>
                      <Chip look={look(label)} />
                      <span>{label}</span>
                    </div>
                  ))}
                  <div
                    className="gutter-lead"
                    style={{ height: LEAD_HEIGHT }}
                    title="How far the leader of each slot is ahead: gap of log-probabilities, in multiples of the gap that chance alone reaches. Above the line a slot is decided."
                  >
                    <span>lead</span>
                    <small>line: by chance</small>
                  </div>
                </div>
                <div className="band-cells">
                  <Band
                    frame={frame}
                    states={states}
                    labels={labels}
                    look={look}
                    column={column}
                    slots={slots}
                    title={
                      frame
                        ? `probabilities of seed ${seed} after ${frame.step} steps: ${decidedCount(states)} of ${slots} slots decided`
                        : `no probabilities of seed ${seed} yet`
                    }
                  />
                  {!frame && <p className="band-empty quiet">{empty}</p>}
                </div>
              </div>
              <SlotRow
                name="leading"
                slots={slots}
                title={`leading blocks of seed ${seed}`}
                labels={
                  states.length ? states.map((each) => (each.undecided ? OPEN : (labels[each.leader] ?? OPEN))) : null
                }
                undecided={states.flatMap((each, slot) => (each.undecided ? [slot] : []))}
                look={look}
              />
            </div>
          ))}

          {strips.map(({ key, ...row }) => (
            <SlotRow key={key} {...row} slots={slots} look={look} />
          ))}
          <CostRow
            costs={costs}
            labels={labels}
            look={look}
            column={column}
            of={costOf}
            band={bands[0]?.frame ?? null}
          />
        </div>
      </div>
      {active !== null && seen.some((each) => each.frame) && (
        <Readout
          slot={active}
          left={GUTTER + (active + 1) * column - (scroll.current?.scrollLeft ?? 0)}
          column={column}
          room={GUTTER + available}
          top={AXIS + (seen.length > 1 ? AXIS : 0) + labels.length * rowHeight(labels.length)}
          bands={seen}
          labels={labels}
          look={look}
        />
      )}
    </div>
  );
});

function Column({ slot, column, kind }: { slot: number; column: number; kind: "hovered" | "pinned" }) {
  return (
    <div className={`column column-${kind}`} style={{ transform: `translateX(${slot * column}px)`, width: column }} />
  );
}

const SlotRow = memo(function SlotRow({
  name,
  title,
  labels,
  undecided,
  look,
  strong = false,
  slots,
}: Omit<StripRow, "key"> & { slots: number; look: (label: string) => Look }) {
  return (
    <div className="picture-row slot-row">
      <div className={`gutter ${strong ? "gutter-strong" : ""}`} title={title}>
        {name}
      </div>
      {labels ? (
        <Strip labels={labels} undecided={undecided} look={look} fill title={title} />
      ) : (
        <BlankStrip n={slots} fill />
      )}
    </div>
  );
}, sameRow);

/** Rows are made anew at each report; most say the same as before. */
function sameRow(one: Parameters<typeof rowKey>[0], other: Parameters<typeof rowKey>[0]): boolean {
  return one.look === other.look && rowKey(one) === rowKey(other);
}
const rowKey = (row: {
  name: string;
  title: string;
  labels: readonly string[] | null;
  undecided: readonly number[];
  strong?: boolean;
  look: unknown;
}) => `${row.name}|${row.title}|${row.labels?.join()}|${row.undecided.join()}|${row.strong}`;

/** Milliseconds of each slot by the latency table: of an architecture, or as expected under the probabilities. */
function CostRow({
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

type Seen = SeedBand & { states: SlotState[] };

/** A slot in words, for those who hear the page. */
function said(slot: number, bands: readonly Seen[], labels: readonly string[]): string {
  const parts = bands.map(({ seed, frame, states }) => {
    const state = states[slot];
    if (!frame || !state) return `seed ${seed}: nothing yet`;
    const name = state.undecided ? "undecided" : `${labels[state.leader]} leads`;
    const row = labels.map((label, index) => `${label} ${fixed(frame.probabilities[slot]?.[index], 2)}`);
    return `seed ${seed}: ${name}; ${row.join(", ")}`;
  });
  return `slot ${slot + 1}. ${parts.join(". ")}`;
}

/** What the pointed column holds, in numbers. */
function Readout({
  slot,
  left,
  top,
  column,
  room,
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
  bands: readonly Seen[];
  labels: readonly string[];
  look: (label: string) => Look;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(220);
  const short = column >= NUMBERS_FIT;
  useLayoutEffect(() => setWidth(box.current?.offsetWidth ?? 220), [bands.length, short]);
  const at = left + 8 + width <= room ? left + 8 : left - column - 8 - width;
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
              {bands.map((each) => {
                const state = each.states[slot];
                const leads = state && !state.undecided && state.leader === index;
                return (
                  <td key={each.seed} className={leads ? "leads" : ""}>
                    {fixed(each.frame?.probabilities[slot]?.[index], 3)}
                  </td>
                );
              })}
            </tr>
          ))}
          <tr className="readout-lead">
            <td>lead</td>
            {bands.map((each) => (
              <td key={each.seed}>{lead(each.states[slot])}</td>
            ))}
          </tr>
          <tr>
            <td>chance</td>
            {bands.map((each) => (
              <td key={each.seed}>{fixed(each.states[slot]?.chance, 2)}</td>
            ))}
          </tr>
          <tr>
            <td />
            {bands.map((each) => (
              <td key={each.seed}>
                {each.states[slot] ? (each.states[slot].undecided ? "undecided" : "decided") : "–"}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

const lead = (state: SlotState | undefined) => (state ? (Number.isFinite(state.gap) ? fixed(state.gap, 2) : "∞") : "–");
