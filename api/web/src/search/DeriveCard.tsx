/** Other constraints on what the search has stored: the service answers at once, and nothing is trained. */

import { memo, useState } from "react";

import { api, get, Problem as Failure } from "../api/client";
import type { components } from "../api/schema";
import type { Look } from "../blocks";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { count, fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Strip } from "../ui/Strip";
import { type Bounds, bodyOf, commandOf, UNBOUNDED } from "./model/derive";

type Derivation = components["schemas"]["Derivation"];
type Architecture = components["schemas"]["DerivedArchitecture"];

export const DeriveCard = memo(function DeriveCard({
  id,
  sample,
  look,
}: {
  id: string;
  sample: number;
  look: (label: string) => Look;
}) {
  const [bounds, setBounds] = useState<Bounds>(UNBOUNDED);
  // With the sample that it is of: a newer one may begin, and be shown, while an answer is under way.
  const [answer, setAnswer] = useState<{ sample: number; found: Derivation | null; problem: Failure | null } | null>(null);
  const { found, problem } = answer?.sample === sample ? answer : { found: null, problem: null };
  const [busy, setBusy] = useState(false);
  const change = (part: Partial<Bounds>) => setBounds((before) => ({ ...before, ...part }));
  const derive = async () => {
    setAnswer((before) => before && { ...before, problem: null });
    setBusy(true);
    try {
      const found = await get(
        api.POST("/api/v1/searches/{search_id}/derive", {
          params: { path: { search_id: id } },
          body: bodyOf(bounds, sample),
        }),
      );
      setAnswer({ sample, found, problem: null });
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setAnswer({ sample, found: null, problem: error });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card title="Derive again" className="rule-card derive-card">
      <p className="quieter">
        The best architectures of each seed under other constraints, from what is stored. Nothing is trained for it, and
        latency is predicted.
      </p>
      <form
        className="row rule-apply"
        onSubmit={(event) => {
          event.preventDefault();
          void derive();
        }}
      >
        <Field
          before="latency at most"
          after="of the parent's"
          step="any"
          value={bounds.latency}
          onText={(latency) => change({ latency })}
        />
        <Field
          before="parameters at most"
          after="of the parent's"
          step="any"
          value={bounds.parameters}
          onText={(parameters) => change({ parameters })}
        />
        <Field
          before="attention in at most"
          after="slots"
          step="1"
          value={bounds.attention}
          onText={(attention) => change({ attention })}
        />
        <label>
          <input type="checkbox" checked={bounds.apart} onChange={(event) => change({ apart: event.target.checked })} />{" "}
          no mixer behind a mixer
        </label>
        <Button type="submit" disabled={busy}>
          Derive
        </Button>
      </form>
      {problem && <Problem problem={problem} />}
      {found?.seeds.map((seed) => (
        <section key={seed.trial} className="rule-carried" aria-label={`seed ${seed.seed}`}>
          <h3>
            seed {seed.seed} <span className="quieter">after {count(seed.step)} steps</span>
          </h3>
          {seed.reason && <p className="quieter">{seed.reason}</p>}
          {seed.architectures.map((each) => (
            <div key={each.string} className="rule-carried">
              <Strip
                labels={each.slots}
                undecided={each.undecided}
                look={look}
                title={`${each.string}, seed ${seed.seed}`}
              />
              <p className="quieter">{words(each)}</p>
            </div>
          ))}
        </section>
      ))}
      <details>
        <summary className="quiet">The same on the command line, with more kinds of constraints and fronts</summary>
        <Command>{commandOf(bounds, id)}</Command>
      </details>
    </Card>
  );
});

function Field({
  before,
  after,
  value,
  step,
  onText,
}: {
  before: string;
  after: string;
  value: string;
  step: string;
  onText: (text: string) => void;
}) {
  return (
    <label>
      {before}{" "}
      <input
        className="input"
        type="number"
        min={0}
        step={step}
        value={value}
        placeholder="any"
        onChange={(event) => onText(event.target.value)}
      />{" "}
      {after}
    </label>
  );
}

function words({ log_probability, nats, costs }: Architecture): string {
  const { latency, parameters } = costs;
  return [
    latency && `${fixed(latency.value, 2)} ms${ofParent(latency.ratio_to_parent)}`,
    parameters && `${count(parameters.value)} parameters${ofParent(parameters.ratio_to_parent)}`,
    nats === null ? `log-probability ${fixed(log_probability, 2)}` : `${fixed(nats, 4)} nats over the path`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function ofParent(ratio: number | null): string {
  return ratio === null ? "" : ` (${fixed(ratio, 2)} of the parent)`;
}
