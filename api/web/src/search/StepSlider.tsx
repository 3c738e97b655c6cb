/** Through the steps of a search: drag, arrow keys, play; "live" follows the newest until it is touched. */

import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";

import { Button } from "../ui/Button";
import { count } from "../ui/format";
import { placeOfStep } from "./model/curve";
import { PHASE_WORDS, phaseAt, type Span } from "./model/phases";

const PLAY_MS = 6000; // from the first step to the last
const FASTEST_MS = 33;
const FAR = 10;
const NAMED = 0.12; // share of the track that holds a phase's name

interface Props {
  /** Steps that have a picture, sorted. */
  steps: readonly number[];
  /** null follows the newest. */
  step: number | null;
  planned: number;
  spans: readonly Span[];
  /** Whether more will come. */
  running: boolean;
  onStep: (step: number | null) => void;
}

export const StepSlider = memo(function StepSlider({ steps, step, planned, spans, running, onStep }: Props) {
  const [playing, setPlaying] = useState(false);
  const last = steps.at(-1) ?? 0;
  const shown = step === null ? last : (steps[Math.max(0, placeOfStep(steps, step + 1) - 1)] ?? 0);
  const until = Math.max(planned, last, 1);
  const latest = useRef({ steps, shown, onStep });
  latest.current = { steps, shown, onStep };

  const move = (places: number) => {
    const to = Math.min(steps.length - 1, Math.max(0, placeOfStep(steps, shown) + places));
    const found = steps[to];
    if (found !== undefined) onStep(found);
  };
  const touch = (change: () => void) => {
    setPlaying(false);
    change();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const places = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -FAR, PageUp: FAR }[event.key];
    if (places !== undefined) touch(() => move(places));
    else if (event.key === "Home") touch(() => onStep(steps[0] ?? null));
    else if (event.key === "End") touch(() => onStep(last));
    else return;
    event.preventDefault();
  };

  useEffect(() => {
    if (!playing) return;
    const wait = Math.max(FASTEST_MS, PLAY_MS / Math.max(1, latest.current.steps.length));
    const timer = setInterval(() => {
      const now = latest.current;
      const next = now.steps[placeOfStep(now.steps, now.shown) + 1];
      if (next === undefined) setPlaying(false);
      else now.onStep(next);
    }, wait);
    return () => clearInterval(timer);
  }, [playing]);

  const play = () => {
    if (!playing && shown >= last) onStep(steps[0] ?? null);
    setPlaying(!playing);
  };
  const none = steps.length === 0;
  const phase = none ? null : phaseAt(spans, shown);
  const words = `step ${count(shown)} of ${count(until)}${phase ? `, ${phase}: ${PHASE_WORDS[phase]}` : ""}`;
  return (
    <div className="step-slider">
      <Button onClick={play} disabled={steps.length < 2} aria-label={playing ? "pause" : "play"} className="square">
        <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
          {playing ? <path d="M2 1h3v10H2zM7 1h3v10H7z" /> : <path d="M2 1l9 5-9 5z" />}
        </svg>
      </Button>
      <div className="step-track">
        {spans.map(({ phase, from, to }) => (
          <div
            key={phase}
            className="step-span"
            data-phase={phase}
            title={`${phase}: ${PHASE_WORDS[phase]}`}
            style={{ left: `${(100 * from) / until}%`, width: `${(100 * (to - from)) / until}%` }}
            aria-hidden="true"
          >
            {(to - from) / until > NAMED && <span>{phase}</span>}
          </div>
        ))}
        <div className="step-reached" style={{ width: `${(100 * last) / until}%` }} aria-hidden="true" />
        <input
          type="range"
          min={0}
          max={until}
          step={1}
          value={shown}
          disabled={none}
          aria-label="step"
          aria-valuetext={words}
          onKeyDown={onKeyDown}
          onChange={(event) =>
            touch(() => onStep(steps[Math.max(0, placeOfStep(steps, Number(event.target.value) + 1) - 1)] ?? 0))
          }
        />
      </div>
      <span className="step-words">
        step <b style={{ minWidth: `${count(until).length}ch` }}>{none ? "–" : count(shown)}</b> of {count(until)}
        <span className="quieter step-phase">{phase ?? ""}</span>
      </span>
      <Button
        className={`live ${step === null ? "live-on" : ""} ${running ? "live-running" : ""}`}
        aria-pressed={step === null}
        disabled={none}
        onClick={() => touch(() => onStep(null))}
        title={running ? "follow the newest step" : "show the last step"}
      >
        {running ? "live" : "last"}
      </Button>
    </div>
  );
});
