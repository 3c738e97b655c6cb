/** Every trial with its state and newest figures; what went wrong before anything else; the runner's log on demand. */

import { memo, useRef, useState } from "react";

import { api, Problem as Failure, sent } from "../api/client";
import type { Trial } from "../api/types";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { count, duration, fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Progress } from "../ui/Progress";
import { StateBadge } from "../ui/StateBadge";
import { Table } from "../ui/Table";
import { Time } from "../ui/Time";
import { nameOf } from "./Curves";
import { secondsBetween } from "./model/format";
import { hasEnded, type Live } from "./model/live";

const FEW = 24;

export const Trials = memo(function Trials({ live, version }: { live: Live; version: number }) {
  const [all, setAll] = useState(false);
  const trials = live.trials;
  const samples = live.samples.length > 1;
  const byId = new Map(live.architectures.map((each) => [each.id, each]));
  const failed = trials.filter((each) => each.reason);
  const shown = all || trials.length <= FEW ? trials : trials.slice(0, FEW);
  return (
    <Card
      title="Trials"
      id="trials"
      aside={<span className="quiet">{trials.length > 0 && count(trials.length)}</span>}
      data-version={version}
    >
      {failed.map((each) => (
        <div key={each.id} className="problem" role="alert">
          <div>
            <strong>
              {each.kind} of seed {each.seed}
              {samples && `, sample ${each.sample}`}:
            </strong>{" "}
            {each.reason}
          </div>
        </div>
      ))}
      {live.warnings.length > 0 && (
        <ul className="warnings">
          {live.warnings.map((each) => (
            <li key={each.number}>
              <Time at={each.at} /> {each.message}
            </li>
          ))}
        </ul>
      )}
      {trials.length === 0 ? (
        <p className="quiet">
          {hasEnded(live.search.state)
            ? "It ended before a trial was planned."
            : "Trials are planned once the blocks are measured."}
        </p>
      ) : (
        <Table
          label="trials"
          head={
            <>
              <th>trial</th>
              <th>seed</th>
              {samples && <th>sample</th>}
              <th>state</th>
              <th>steps</th>
              <th className="figure">training, nats</th>
              <th className="figure">validation, nats</th>
              <th className="figure">tokens/s</th>
              <th className="figure">time</th>
            </>
          }
        >
          {shown.map((trial) => (
            <Row
              key={trial.id}
              trial={trial}
              live={live}
              samples={samples}
              name={trial.architecture ? nameOf(byId.get(trial.architecture), live) : ""}
            />
          ))}
        </Table>
      )}
      {shown.length < trials.length && <Button onClick={() => setAll(true)}>Show all {count(trials.length)}</Button>}
      <Log id={live.search.id} />
    </Card>
  );
});

function Row({ trial, live, samples, name }: { trial: Trial; live: Live; samples: boolean; name: string }) {
  const curve = live.curveOf(trial.id);
  const validation = curve.last("val_loss") ?? curve.last("val_loss_argmax") ?? curve.last("val_loss_soft");
  const took = secondsBetween(trial.started_at, trial.finished_at, Date.now());
  const params = Object.entries(trial.params ?? {});
  const { phase } = live.toldOf(trial.id);
  return (
    <tr>
      <td
        className="trial-name"
        title={trial.attempt > 1 ? `started in attempt ${trial.attempt} of the search` : undefined}
      >
        {trial.kind} {name && <code>{name}</code>}
      </td>
      <td>{trial.seed}</td>
      {samples && (
        <td title={params.map(([pointer, value]) => `${pointer} ${String(value)}`).join(", ")}>
          {trial.kind === "search" && trial.sample}{" "}
          <span className="quieter">
            {params
              .map(
                ([pointer, value]) =>
                  `${pointer.replace("/method/", "")} ${typeof value === "number" ? Number(value.toPrecision(3)) : String(value)}`,
              )
              .join(", ")}
          </span>
        </td>
      )}
      <td>
        <StateBadge state={trial.state} />
      </td>
      <td className="trial-steps">
        <Progress
          share={trial.n_steps ? trial.step / trial.n_steps : 0}
          state={trial.state}
          label={`steps of ${trial.kind}, seed ${trial.seed}`}
        />
        <span className="quieter">
          {count(trial.step)} of {count(trial.n_steps)}
          {trial.state === "running" && phase && `, ${phase}`}
        </span>
      </td>
      <td className="figure">{fixed(curve.last("train_loss"), 3)}</td>
      <td className="figure">{fixed(validation, 3)}</td>
      <td className="figure">
        {curve.last("tokens_per_s") === null ? "–" : count(Math.round(curve.last("tokens_per_s") ?? 0))}
      </td>
      <td className="figure">{took === null ? "–" : duration(took)}</td>
    </tr>
  );
}

function Log({ id }: { id: string }) {
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<Failure | null>(null);
  const box = useRef<HTMLPreElement>(null);
  const load = async () => {
    setProblem(null);
    try {
      const found = await sent(
        api.GET("/api/v1/searches/{search_id}/log", { params: { path: { search_id: id } }, parseAs: "text" }),
      );
      setText(String(found.data ?? "")); // an empty answer has no data
      requestAnimationFrame(() => box.current?.scrollTo(0, box.current.scrollHeight));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setProblem(error);
    }
  };
  return (
    <details className="log" onToggle={(event) => event.currentTarget.open && text === null && void load()}>
      <summary>The runner's log</summary>
      {problem && <Problem problem={problem} />}
      {text !== null &&
        (text.trim() === "" ? (
          <p className="quiet">The log is empty: the runner prints only what is out of the ordinary.</p>
        ) : (
          <pre ref={box} tabIndex={0} aria-label="the end of the runner's log">
            {text}
          </pre>
        ))}
      <Button onClick={() => void load()}>Read again</Button>
    </details>
  );
}
