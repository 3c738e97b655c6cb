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
import { Band, bandHeight, LEAD_HEIGHT, numbersFit, rowHeight } from "./Band";
import { AXIS, said, type SeedBand } from "./bands";
import { Buys } from "./Buys";
import { CostRow } from "./CostRow";
import { columnWidth, GUTTER, isNumbered, numberEvery, slotAt } from "./model/columns";
import type { Costs } from "./model/cost";
import { boughtBy, REFERS } from "./model/effects";
import { decidedCount, slotStates } from "./model/leading";
import { Readout } from "./Readout";
import { SlotRow, type StripRow } from "./SlotRow";
import { Chip } from "./ui";

interface Props {
  labels: readonly string[];
  look: (label: string) => Look;
  slots: number;
  bands: readonly SeedBand[];
  strips: readonly StripRow[];
  costs: Costs | null;
  /** What stands where blocks will be weighed against cheaper ones; null: they are not, in this search. */
  weighing: string | null;
  /** What the bars of cost stand for: labels of an architecture; null: the expectation of the first band. */
  costOf: StripRow | null;
  pinned: number | null;
  onPin: (slot: number | null) => void;
  empty: string;
}

/** Of a leading strip: an undecided slot names no block, not even the first of a tie. */
const OPEN = "";

export const Picture = memo(function Picture({
  labels,
  look,
  slots,
  bands,
  strips,
  costs,
  weighing,
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
    () =>
      bands.map((band) => ({
        ...band,
        states: band.frame ? slotStates(band.frame) : [],
        bought: boughtBy(band.frame, labels, (label) => look(label).family, costs),
      })),
    [bands, labels, look, costs],
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

          {seen.map(({ seed, frame, states, bought }) => (
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
              {weighing !== null && (
                <>
                  <SlotRow
                    name="path"
                    slots={slots}
                    title={`path that the parsimony pass holds, seed ${seed}`}
                    labels={bought && bought.map((each) => each.label)}
                    undecided={(bought ?? []).flatMap((each, slot) => (each.tied ? [slot] : []))}
                    look={look}
                  />
                  <Buys {...{ seed, bought, look, column, slots }} waiting={weighing} />
                </>
              )}
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
          short={numbersFit(column, labels.length)}
          top={AXIS + (seen.length > 1 ? AXIS : 0) + labels.length * rowHeight(labels.length)}
          bands={seen}
          labels={labels}
          look={look}
        />
      )}
      {weighing !== null && <p className="quiet picture-note">buys: {REFERS}</p>}
    </div>
  );
});

function Column({ slot, column, kind }: { slot: number; column: number; kind: "hovered" | "pinned" }) {
  return (
    <div className={`column column-${kind}`} style={{ transform: `translateX(${slot * column}px)`, width: column }} />
  );
}
