/** The pinned slot: the probability of each candidate over the steps, seed by seed, with its z and the level of chance. */

import { memo, useMemo, useRef } from "react";

import type { Look } from "../blocks";
import { Button } from "../ui/Button";
import { fixed } from "../ui/format";
import { zWords } from "./model/evidence";
import type { Frames } from "./model/frames";
import type { Span } from "./model/phases";
import { type Line, Plot } from "./Plot";

/** A second candidate of one family has its colour: another dash tells them apart. */
const DASHES = [undefined, [7, 3], [2, 2], [7, 2, 2, 2]];
const show = (value: number | null) => `p ${fixed(value, 3)}`;

export interface SeedFrames {
  seed: number;
  frames: Frames;
  length: number;
}

interface Props {
  slot: number;
  slots: number;
  seeds: readonly SeedFrames[];
  labels: readonly string[];
  look: (label: string) => Look;
  until: number;
  step: number | null;
  version: number;
  spans: readonly Span[];
  onStep: (step: number) => void;
  onSlot: (slot: number | null) => void;
}

/** One scale for all seeds, from 0: of few heights, so that it stays while points arrive. */
function scaleOf(seeds: readonly SeedFrames[], slot: number, candidates: number): readonly [number, number] {
  const columns = seeds.flatMap((each) => [...each.frames.historyOf(slot, candidates), each.frames.chanceOf(slot)]);
  const top = columns.reduce(
    (max, column) => column.reduce<number>((high, value) => Math.max(high, value ?? 0), max),
    0,
  );
  return top <= 0.24 ? QUARTER : top <= 0.48 ? HALF : WHOLE;
}
const QUARTER = [0, 0.25] as const;
const HALF = [0, 0.5] as const;
const WHOLE = [0, 1] as const;

export const SlotHistory = memo(function SlotHistory(props: Props) {
  const { slot, slots, seeds, labels, version, onSlot } = props;
  const range = useMemo(() => scaleOf(seeds, slot, labels.length), [seeds, slot, labels.length, version]);
  return (
    <section className="history" aria-label={`history of slot ${slot + 1}`}>
      <header>
        <h3>Slot {slot + 1}: probability of each block over the steps</h3>
        <div className="row history-buttons">
          <Button kind="quiet" disabled={slot === 0} onClick={() => onSlot(slot - 1)} aria-label="slot before">
            ‹
          </Button>
          <Button kind="quiet" disabled={slot === slots - 1} onClick={() => onSlot(slot + 1)} aria-label="slot after">
            ›
          </Button>
          <Button kind="quiet" onClick={() => onSlot(null)} aria-label="close the history">
            ✕
          </Button>
        </div>
      </header>
      <div className="history-plots">
        {seeds.map((each) => (
          <SeedHistory key={each.seed} {...props} {...each} range={range} />
        ))}
      </div>
      <p className="quieter">
        Above the dashed line a leader is ahead by more than chance alone reaches; below it the slot is undecided. z is the
        mean of the gradient of a block's alpha over its standard error: below 2 it is within noise, whatever the
        probability.
      </p>
    </section>
  );
});

function SeedHistory({
  slot,
  seed,
  frames,
  length,
  labels,
  look,
  until,
  step,
  version,
  spans,
  range,
  onStep,
}: Omit<Props, "seeds"> & SeedFrames & { range: readonly [number, number] }) {
  const z = useMemo(() => frames.evidenceOf(slot, labels.length), [frames, slot, labels, version, length]);
  const evidence = useRef(z);
  evidence.current = z;
  const lines = useMemo(() => {
    const families = new Map<string, number>();
    const found: Line[] = labels.map((label, index) => {
      const { family, colour, letter } = look(label);
      const before = families.get(family) ?? 0;
      families.set(family, before + 1);
      const adds = (place: number | null) => zWords(evidence.current[index]?.at(place ?? -1));
      return { label, letter, colour, width: 2, dash: DASHES[before % DASHES.length], adds };
    });
    return [...found, { label: "decided above", colour: "--ink-2", width: 1.25, dash: [4, 3] }];
  }, [labels, look]);
  // `version` says when the frames, which grow in place, have changed.
  const data = useMemo(
    () => [[...frames.steps], ...frames.historyOf(slot, labels.length), frames.chanceOf(slot)],
    [frames, slot, labels, version, length],
  );
  return (
    <div>
      <h4>seed {seed}</h4>
      <Plot
        title={`slot ${slot + 1}, seed ${seed}: probabilities over steps`}
        lines={lines}
        data={data}
        show={show}
        spans={spans}
        range={range}
        until={until}
        step={step}
        onStep={onStep}
        height={170}
        empty="No probabilities yet."
      />
    </div>
  );
}
