/** The scalars of the trials over their steps: losses side by side, and on demand cost, pressure, entropy and the like. */

import { memo, useMemo, useState } from "react";

import type { Architecture, Trial } from "../api/types";
import { Card } from "../ui/Card";
import { count, fixed } from "../ui/format";
import { aligned, type CurveName } from "./model/curve";
import { milliseconds } from "./model/format";
import { hasEnded, type Live } from "./model/live";
import { lossUnit } from "./model/metrics";
import type { Span } from "./model/phases";
import { type CurveChoice, CURVES, type LossChoice } from "./model/view";
import { type Line, Plot } from "./Plot";
import type { Mark } from "./plotMarks";
import { seedColour, seedDash } from "./theme";
import { Choice } from "./ui";

interface Props {
  live: Live;
  version: number;
  sample: number;
  /** Steps of a search trial and of a retraining. */
  until: { search: number; retrain: number };
  step: number | null;
  /** Phases of the trial that the picture shows. */
  spans: readonly Span[];
  /** Steps at which its guards have found something. */
  notes: readonly number[];
  onStep: (step: number) => void;
}
type LossProps = Props & { loss: LossChoice; onLoss: (loss: LossChoice) => void };
type CurveProps = Props & { curve: CurveChoice; budgetMs: number | null; onCurve: (curve: CurveChoice) => void };

const KINDS: { name: CurveName; words: string; dash: number[] | undefined; width: number; title: string }[] = [
  {
    name: "val_loss_argmax",
    words: "leading path",
    dash: undefined,
    width: 2,
    title: "validation loss of the path of the largest probabilities",
  },
  {
    name: "val_loss_sampled",
    words: "sampled paths",
    dash: [2, 3],
    width: 1.75,
    title: "mean validation loss of paths drawn from the probabilities; far above the leading path, they are not decided",
  },
  {
    name: "val_loss_soft",
    words: "mixture",
    dash: [7, 4],
    width: 1.5,
    title: "validation loss of the supernet mixed by its probabilities",
  },
  {
    name: "train_loss",
    words: "training",
    dash: [1, 4],
    width: 1.5,
    title: "mean loss of the weight updates, on sampled paths",
  },
];
const RETRAIN_KINDS: typeof KINDS = [
  { name: "val_loss", words: "validation", dash: undefined, width: 2, title: "validation loss of the network" },
  { name: "train_loss", words: "training", dash: [2, 3], width: 1.5, title: "mean loss of the weight updates" },
];
const nats = (value: number | null) => fixed(value, 3);

export const LossCard = memo(function LossCard({
  live,
  version,
  sample,
  until,
  loss,
  step,
  spans,
  notes,
  onLoss,
  onStep,
}: LossProps) {
  const [hidden, setHidden] = useState<readonly CurveName[]>(["train_loss"]);
  const search = live.searchTrials(sample);
  const retrain = live.retrainTrials;
  const kinds = loss === "search" ? KINDS : RETRAIN_KINDS;
  const shown = kinds.filter((each) => !hidden.includes(each.name));
  const { lines, data } = useMemo(
    () => (loss === "search" ? ofSearch(live, search, shown) : ofRetrainings(live, retrain, shown)),
    [live, version, loss, sample, hidden],
  );
  return (
    <Card
      className="curve-card"
      title={
        <>
          Loss <span className="unit">{lossUnit(live.search.request)}</span>
        </>
      }
      aside={
        <Choice
          label="trials"
          value={loss}
          onChange={onLoss}
          options={[
            { value: "search", words: "search" },
            {
              value: "retrain",
              words: "retraining",
              disabled: retrain.length === 0,
              title: retrain.length ? "" : "comes after deriving",
            },
          ]}
        />
      }
    >
      <div className="kinds" role="group" aria-label="curves">
        {kinds.map(({ name, words, dash, title }) => (
          <label key={name} title={title}>
            <input
              type="checkbox"
              checked={!hidden.includes(name)}
              onChange={() =>
                setHidden(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name])
              }
            />
            <svg width="22" height="8" aria-hidden="true">
              <line x1="0" y1="4" x2="22" y2="4" strokeDasharray={dash?.join(" ")} />
            </svg>
            {words}
          </label>
        ))}
      </div>
      <Plot
        title={`loss over steps, ${loss === "search" ? "search trials" : "retrainings"}`}
        lines={lines}
        data={data}
        show={nats}
        until={until[loss]}
        step={loss === "search" ? step : null}
        {...(loss === "search" ? { onStep, spans, notes } : {})}
        settle
        empty={loss === "search" ? emptyWords(live) : "Retrainings begin once architectures are derived."}
      />
    </Card>
  );
});

function ofSearch(
  live: Live,
  trials: readonly Trial[],
  kinds: typeof KINDS,
): { lines: Line[]; data: (number | null)[][] } {
  const curves = trials.map((trial) => live.curveOf(trial.id));
  const main = kinds.find((kind) => curves.some((curve) => curve.has(kind.name))) ?? kinds[0];
  const all = kinds.flatMap((kind) => trials.map((trial, index) => ({ kind, trial, index, curve: curves[index] })));
  return {
    lines: all.map(({ kind, trial, index }) => ({
      label: `seed ${trial.seed}`,
      colour: seedColour(index),
      width: kind.width,
      dash: kind.dash ?? seedDash(index),
      silent: kind !== main,
    })),
    data: aligned(
      all.map(({ kind, curve }) => ({ steps: curve?.steps ?? [], values: curve?.values[kind.name] ?? [] })),
    ),
  };
}

/** Of retrainings the colour is the architecture's, solid the result, dashed the parent; seeds lie beside each other. */
function ofRetrainings(
  live: Live,
  trials: readonly Trial[],
  kinds: typeof KINDS,
): { lines: Line[]; data: (number | null)[][] } {
  const byId = new Map(live.architectures.map((each) => [each.id, each]));
  const ids = [...new Set(trials.map((trial) => trial.architecture))];
  const all = kinds.flatMap((kind, place) => trials.map((trial) => ({ kind, trial, first: place === 0 })));
  return {
    lines: all.map(({ kind, trial, first }) => {
      const index = ids.indexOf(trial.architecture);
      const found = trial.architecture === null ? undefined : byId.get(trial.architecture);
      return {
        label: `${nameOf(found, live)}, seed ${trial.seed}`,
        colour: found?.role === "parent" ? "--ink-3" : seedColour(index),
        width: kind.width,
        dash: kind.dash ?? (found?.role === "parent" ? [7, 3] : undefined),
        silent: !first,
      };
    }),
    data: aligned(
      all.map(({ kind, trial }) => {
        const curve = live.curveOf(trial.id);
        return { steps: curve.steps, values: curve.values[kind.name] };
      }),
    ),
  };
}

const emptyWords = (live: Live) =>
  hasEnded(live.search.state) ? "There is no report of this." : "Curves begin with the first report of a trial.";

const SHORT = 12;

/** A short name for an architecture: its letters where they are few, else where it comes from. */
export function nameOf(found: Architecture | undefined, live: Live): string {
  if (!found) return "architecture";
  if (found.role === "parent") return "parent";
  if (found.string.length <= SHORT) return found.string;
  const seed = live.trials.find((trial) => trial.id === found.trial)?.seed;
  return seed === undefined ? found.role : `derived ${seed}`;
}

interface Chosen {
  name: CurveName;
  title: string;
  unit: string;
  show: (value: number | null) => string;
  /** Ends of its axis, where it has any. */
  range?: readonly [number, number];
}

const digits = (places: number) => (value: number | null) => fixed(value, places);
const CHOICES: Record<CurveChoice, Chosen> = {
  cost: { name: "expected_ms", title: "Expected cost", unit: "ms", show: milliseconds },
  dual: { name: "dual", title: "Pressure of the budget", unit: "nats a budget", show: digits(4) },
  entropy: { name: "entropy", title: "Entropy of the probabilities", unit: "nats a slot", show: digits(3) },
  identity: {
    name: "identity_share",
    title: "Share of slots at identity",
    unit: "expected",
    show: digits(3),
    range: [0, 1],
  },
  velocity: { name: "alpha_velocity", title: "Change of the probabilities", unit: "a slot and report", show: digits(4) },
  tau: { name: "tau", title: "Temperature", unit: "", show: digits(2) },
  speed: {
    name: "tokens_per_s",
    title: "Training speed",
    unit: "tokens per second",
    show: (value) => (value === null ? "–" : count(Math.round(value))),
  },
};

export const CurveCard = memo(function CurveCard({
  live,
  version,
  sample,
  until,
  budgetMs,
  curve,
  step,
  spans,
  notes,
  onCurve,
  onStep,
}: CurveProps) {
  const chosen = CHOICES[curve];
  const trials = live.searchTrials(sample);
  const { lines, data } = useMemo(
    () => ({
      lines: trials.map((trial, index) => ({
        label: `seed ${trial.seed}`,
        colour: seedColour(index),
        dash: seedDash(index),
      })),
      data: aligned(
        trials.map((trial) => {
          const found = live.curveOf(trial.id);
          return { steps: found.steps, values: found.values[chosen.name] };
        }),
      ),
    }),
    [live, version, sample, chosen],
  );
  const marks = useMemo<Mark[]>(
    () => (curve === "cost" && budgetMs !== null ? [{ y: budgetMs, label: `budget ${milliseconds(budgetMs)}` }] : []),
    [curve, budgetMs],
  );
  return (
    <Card
      className="curve-card"
      title={
        <>
          {chosen.title} <span className="unit">{chosen.unit}</span>
        </>
      }
      aside={
        <select
          className="input"
          aria-label="curve"
          value={curve}
          onChange={(event) => onCurve(event.target.value as CurveChoice)}
        >
          {CURVES.map((value) => (
            <option key={value} value={value}>
              {CHOICES[value].title.toLowerCase()}
            </option>
          ))}
        </select>
      }
    >
      <Plot
        title={`${chosen.title} over steps`}
        lines={lines}
        data={data}
        show={chosen.show}
        marks={marks}
        {...(chosen.range ? { range: chosen.range } : {})}
        {...{ spans, notes, step, onStep }}
        until={until.search}
        empty={emptyWords(live)}
      />
    </Card>
  );
});
