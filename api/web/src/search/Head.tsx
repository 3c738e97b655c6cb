/** The head of a search: what it is, how far, and what can be done with it. A failure's reason comes first. */

import { type ReactNode, useEffect, useState } from "react";

import { api, get, Problem as Failure, sent, useQuery } from "../api/client";
import type { Result, Search, SearchRequest } from "../api/types";
import { here, Link, navigate } from "../router";
import { Button, ButtonLink } from "../ui/Button";
import { count, duration, fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Progress, timeLeft } from "../ui/Progress";
import { StateBadge } from "../ui/StateBadge";
import { Time } from "../ui/Time";
import { boundWords } from "./model/cost";
import { estimateOf } from "./model/estimate";
import { counted, percent, secondsBetween } from "./model/format";
import { hasEnded, type Live } from "./model/live";
import { countedPhases } from "./model/phases";
import { STAGE_WORDS, stepsOf } from "./model/stages";

export function Head({ live, version, put }: { live: Live; version: number; put: (search: Search) => void }) {
  const { search } = live;
  const [problem, setProblem] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const ended = hasEnded(search.state);
  const estimate = estimateOf(search);
  const model = live.artifacts.find((each) => each.kind === "export");

  const act = async (action: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await action();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => setProblem(null), [search.state]); // what was refused of another state
  const params = { path: { search_id: search.id } };
  const cancel = () => act(async () => put(await get(api.POST("/api/v1/searches/{search_id}/cancel", { params }))));
  const resume = () => {
    setAsking(false);
    return act(async () => put(await get(api.POST("/api/v1/searches/{search_id}/resume", { params }))));
  };
  const remove = () =>
    act(async () => {
      const stillHere = here();
      await sent(api.DELETE("/api/v1/searches/{search_id}", { params }));
      if (stillHere()) navigate("/");
    });

  return (
    <header className="search-head" data-version={version}>
      <div className="search-title">
        <div>
          <h1>{search.name}</h1>
          <div role="status">
            <StateBadge state={search.state} cancelling={search.cancelling} />
          </div>
        </div>
        <div className="search-actions">
          {model && search.state === "succeeded" && (
            <a className="button button-primary" href={`/api/v1/artifacts/${model.id}`} download={model.name}>
              Download model
            </a>
          )}
          {!ended && (
            <Button onClick={() => void cancel()} disabled={busy || search.cancelling}>
              {search.cancelling ? "Cancelling" : "Cancel"}
            </Button>
          )}
          {(search.state === "failed" || search.state === "cancelled") && (
            <Button
              kind="primary"
              onClick={() => void resume()}
              disabled={busy}
              title="go on from the last checkpoints"
            >
              Resume
            </Button>
          )}
          <ButtonLink href={`/new?from=${search.id}`}>Duplicate</ButtonLink>
          {ended && !asking && (
            <Button kind="danger" onClick={() => setAsking(true)} disabled={busy}>
              Delete
            </Button>
          )}
          {ended && asking && (
            <span
              className="confirm"
              role="alertdialog"
              aria-label="delete this search?"
              onKeyDown={(event) => event.key === "Escape" && setAsking(false)}
            >
              Delete it with its model and files?
              <Button kind="danger" onClick={() => void remove()} disabled={busy}>
                Delete
              </Button>
              <Button kind="quiet" onClick={() => setAsking(false)} autoFocus>
                Keep
              </Button>
            </span>
          )}
        </div>
      </div>
      {search.state === "failed" && (
        <div className="problem search-reason" role="alert">
          <strong>Failed while {stepsOf(live).find((each) => each.state === "stopped")?.name ?? "running"}</strong>
          <p>{search.reason ?? "no reason was kept"}</p>
          <p className="quiet">
            Resume goes on from the last checkpoints; Duplicate opens the request with everything filled in. The
            runner's log is under <a href="#trials">Trials</a>.
          </p>
        </div>
      )}
      {problem && <Problem problem={problem} />}
      <Summary search={search} />
      <Facts search={search} />
      {estimate && <p className="quiet search-estimate">{estimate}</p>}
      <Stepper live={live} />
      <ProgressLine live={live} />
    </header>
  );
}

/** The result in a sentence; its table is further down. */
function Summary({ search }: { search: Search }) {
  if (search.state !== "succeeded" || !search.result) return null;
  const { quality, latency, derived } = search.result as unknown as Result;
  return (
    <p className="search-summary">
      {derived.string.length <= 24 ? <code>{derived.string}</code> : "The derived model"}
      {quality && (
        <>
          {" "}
          has <b>{fixed(quality.derived_bits_per_byte, 3)}</b> {quality.unit ?? "bits per byte"} on test, {QUALITY[quality.verdict]}
        </>
      )}
      {latency && (
        <>
          {quality ? ", at " : " has "}
          <b>{fixed(latency.ratio, 3)}</b> of the parent's latency
        </>
      )}
      . <a href="#result">Figures and intervals</a>
    </p>
  );
}

const QUALITY = {
  better: "better than the parent",
  worse: "worse than the parent",
  "cannot tell": "which cannot be told from the parent's",
} as const;

function Facts({ search }: { search: Search }) {
  const request = search.request as unknown as SearchRequest;
  const { space, task, trials, budget } = request;
  const parts: ReactNode[] = [
    <>
      on <b>{task.dataset}</b>
    </>,
    `${counted(space.n_slots, "slot")}, ${counted(space.candidates.length, "candidate")}, width ${count(space.d_model)}`,
    `${count(task.train_length)} tokens`,
    `${counted(trials.n_seeds, "seed")}${trials.n_samples > 1 ? `, ${counted(trials.n_samples, "sample")}` : ""}`,
    ...boundWords(budget),
    <>
      {search.started_at ? "started" : "submitted"} <Time at={search.started_at ?? search.created_at} />
    </>,
  ];
  if (search.finished_at && search.started_at) {
    parts.push(`took ${duration(secondsBetween(search.started_at, search.finished_at, 0) ?? 0)}`);
  }
  if (search.attempt > 1) parts.push(`attempt ${search.attempt}`);
  return (
    <ul className="facts quiet">
      {parts.map((part, index) => (
        <li key={index}>{part}</li>
      ))}
      <li>
        <code title="id of the search">{search.id}</code>
      </li>
    </ul>
  );
}

const SIGNS = { done: "✓", now: "", stopped: "×", ahead: "" } as const;
const STATES = { done: "done", now: "under way", stopped: "stopped here", ahead: "ahead" } as const;

function Stepper({ live }: { live: Live }) {
  return (
    <ol className={`stepper stepper-${live.search.state}`} aria-label="stages">
      {stepsOf(live).map(({ name, state, seconds }) => (
        <li key={name} data-state={state} title={STAGE_WORDS[name]} aria-current={state === "now" ? "step" : undefined}>
          <i aria-hidden="true">{SIGNS[state]}</i>
          <span>
            {name}
            <span className="visually-hidden">, {STATES[state]}</span>
          </span>
          <small>{seconds === null ? "" : duration(seconds)}</small>
        </li>
      ))}
    </ol>
  );
}

function ProgressLine({ live }: { live: Live }) {
  const { search } = live;
  const { progress, state } = search;
  if (state === "queued") return <Waiting search={search} />;
  const words =
    state === "running"
      ? search.cancelling
        ? "stops at its last checkpoint"
        : timeLeft(progress.eta_s) || "no estimate yet"
      : state === "succeeded" || progress.step === 0
        ? ""
        : "kept up to its last checkpoints";
  const running = live.trials.filter((each) => each.kind === "search" && each.state === "running");
  const phases = state === "running" ? countedPhases(running.map((each) => live.toldOf(each.id).phase)) : "";
  return (
    <div className="progress-line">
      <Progress share={progress.share} state={state} label="weight updates done" />
      <div className="spread quiet">
        <span>
          <b>{percent(progress.share)}</b> · {count(progress.step)}
          {state === "succeeded" ? "" : ` of ${count(progress.n_steps)}`} weight updates
          {phases && ` · trials: ${phases}`}
        </span>
        <span>{words}</span>
      </div>
    </div>
  );
}

/** A queued search waits for resources, or for a dispatcher; which, other searches tell. */
function Waiting({ search }: { search: Search }) {
  const running = useQuery(
    `running-${search.id}`,
    (signal) => api.GET("/api/v1/searches", { params: { query: { state: "running", limit: 5 } }, signal }),
    { every: 3000 },
  );
  const { resources } = search.request as unknown as SearchRequest;
  const needs = [counted(resources.cpus, "CPU"), ...(resources.gpus ? [counted(resources.gpus, "GPU")] : [])].join(
    " and ",
  );
  const others = running.data?.items ?? [];
  return (
    <p className="progress-line waiting">
      {others.length > 0 ? (
        <>
          Waits until {needs} {resources.cpus === 1 && !resources.gpus ? "is" : "are"} free for a trial. Running now:{" "}
          {others.map((each, index) => (
            <span key={each.id}>
              {index > 0 && ", "}
              <Link href={`/searches/${each.id}`}>{each.name}</Link>
            </span>
          ))}
          .
        </>
      ) : (
        <>
          Waits for a dispatcher to take it, which needs {needs} for a trial. Nothing else runs: should it still be here
          in a minute, see that <code>blockwright serve</code> or <code>blockwright dispatch</code> is running.
        </>
      )}
    </p>
  );
}
