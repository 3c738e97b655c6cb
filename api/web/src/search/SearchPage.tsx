/** The page of one search: head, the picture on its slot axis, curves, result, trials; live while it runs. */

import { useCallback, useEffect, useMemo } from "react";

import type { Result as Found, SearchRequest, Trial } from "../api/types";
import { looks, useCatalog } from "../blocks";
import { Link } from "../router";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Empty } from "../ui/Empty";
import { Problem } from "../ui/Problem";
import { CurveCard, LossCard } from "./Curves";
import { Head } from "./Head";
import { budgetMs, candidatesOf, costsOf, parentOf, predictMs } from "./model/cost";
import { percent } from "./model/format";
import { hasEnded, type Live, slotsOf } from "./model/live";
import { Picture, type StripRow } from "./Picture";
import { Model, Result } from "./Result";
import { RuleCard } from "./RuleCard";
import { SlotHistory } from "./SlotHistory";
import { StepSlider } from "./StepSlider";
import { Trials } from "./Trials";
import { Choice } from "./ui";
import { type Followed, useSearch } from "./useSearch";
import { useView } from "./useView";
import "./search.css";

/** Slots up to which the curves stand beside the picture. */
const BESIDE = 24;

export function SearchPage({ id }: { id: string }) {
  const followed = useSearch(id);
  const { live, problem, reload } = followed;
  const gone = problem?.status === 404 || problem?.status === 422;
  if (gone) {
    return (
      <Empty title={live ? "This search has been deleted" : "There is no such search"}>
        <p className="quiet">
          {live ? `${live.search.name}, ` : "Its address names "}
          <code>{id}</code>
          {live ? " and its files are gone." : ", which this service does not know."}
        </p>
        <Link href="/">All searches</Link>
      </Empty>
    );
  }
  if (!live) {
    return problem ? (
      <Problem problem={problem} title="The search could not be read">
        <div>
          <Button onClick={reload}>Try again</Button>
        </div>
      </Problem>
    ) : (
      <div className="search-loading" aria-busy="true" aria-label="reading the search" />
    );
  }
  return <Loaded followed={followed} live={live} />;
}

function Loaded({ followed, live }: { followed: Followed; live: Live }) {
  const { version, table, put, follow, problem, reload } = followed;
  const { search } = live;
  const slots = slotsOf(search);
  const request = search.request as unknown as SearchRequest;
  const running = !hasEnded(search.state);
  const result = search.result as Found | null;
  const [view, change] = useView(slots);
  const catalog = useCatalog();
  const look = useMemo(() => looks(catalog.data, search.request), [catalog.data, search.id]);

  const sample = view.sample !== null && live.samples.includes(view.sample) ? view.sample : live.defaultSample;
  const trials = live.searchTrials(sample);
  const resultSeed = result?.derived.sample === sample ? result.derived.seed : null;
  const chosen =
    trials.find((each) => each.seed === view.seed) ?? trials.find((each) => each.seed === resultSeed) ?? trials[0];
  const shown = view.folded || trials.length < 2 ? (chosen ? [chosen] : []) : trials;
  const wanted = view.slot === null ? shown : trials;
  const names = wanted.map((each) => each.id).join();
  useEffect(() => follow(names ? names.split(",") : []), [follow, names]);

  const ids = shown.map((each) => each.id).join();
  const lengths = shown.map((each) => live.framesOf(each.id).steps.at(-1)).join();
  const bands = useMemo(
    () =>
      shown.length
        ? shown.map(({ id, seed }) => ({ seed, frame: live.framesOf(id).at(view.step) }))
        : [{ seed: request.trials.seed, frame: null }],
    [live, version, ids, view.step],
  );
  const steps = useMemo(
    () => [...new Set(shown.flatMap(({ id }) => live.framesOf(id).steps))].sort((one, other) => one - other),
    [live, version, ids, lengths],
  );
  const until = {
    search: Math.max(request.method.n_steps, ...trials.map((each) => each.n_steps)),
    retrain: request.retrain.n_steps,
  };

  const costs = useMemo(() => (table ? costsOf(table, candidatesOf(request)) : null), [table, search.id]);
  const parent = live.architectures.find((each) => each.role === "parent");
  const family = useCallback((label: string) => look(label).family, [look]);
  const parentLabels = useMemo(
    () => (parent ? slotsIn(parent.architecture) : parentOf(search.labels, family, slots)),
    [parent?.id, family, slots],
  );
  const parentMs = parent?.predicted_ms ?? (costs && parentLabels ? predictMs(costs, parentLabels) : null);
  const strips = useMemo(() => stripsOf(live, shown, parentLabels), [live, live.architectures, ids, parentLabels]);
  const chosenStrip = strips.find((each) => each.strong) ?? null;

  const onStep = useCallback((step: number | null) => change({ step }), [change]);
  const onSlot = useCallback((slot: number | null) => change({ slot }), [change]);
  const loss = view.loss ?? (running && search.stage === "retraining" ? "retrain" : "search");
  const histories = trials.map((each) => ({
    seed: each.seed,
    frames: live.framesOf(each.id),
    length: live.framesOf(each.id).length,
  }));

  useEffect(() => {
    const before = document.title;
    const share = search.state === "running" ? percent(search.progress.share) : search.state;
    document.title = `${search.name} · ${share} · Blockwright`;
    return () => {
      document.title = before;
    };
  }, [search.name, search.state, search.progress.share]);

  const drawn = catalog.data !== undefined || catalog.problem !== null;
  return (
    <div className={`search ${slots > BESIDE ? "search-deep" : ""}`}>
      <Head live={live} version={version} put={put} />
      {problem && problem.status !== 0 && (
        <Problem problem={problem} title="Part of this search could not be read">
          <div>
            <Button onClick={reload}>Read it again</Button>
          </div>
        </Problem>
      )}
      <div className="search-main">
        <Card
          className="picture-card"
          title="Which block each slot wants"
          aside={
            <div className="row">
              {live.samples.length > 1 && (
                <label className="quiet">
                  sample{" "}
                  <select className="input" value={sample} onChange={(event) => change({ sample: Number(event.target.value), step: null })}>
                    {live.samples.map((each) => (
                      <option key={each} value={each}>
                        {each}
                      </option>
                    ))}
                  </select>
                </label>
              )}
              {trials.length > 1 && (
                <Choice
                  label="seeds"
                  value={view.folded ? String(chosen?.seed) : "all"}
                  onChange={(value) => change(value === "all" ? { folded: false } : { folded: true, seed: Number(value) })}
                  options={[
                    ...trials.map((each) => ({ value: String(each.seed), words: `seed ${each.seed}` })),
                    { value: "all", words: "all" },
                  ]}
                />
              )}
            </div>
          }
        >
          <StepSlider
            steps={steps}
            step={view.step}
            planned={until.search}
            warmup={Math.round(request.method.warmup_share * until.search)}
            running={running && search.stage === "searching"}
            onStep={onStep}
          />
          {drawn && (
            <Picture
              labels={search.labels}
              look={look}
              slots={slots}
              bands={bands}
              strips={strips}
              costs={costs}
              costOf={chosenStrip}
              pinned={view.slot}
              onPin={onSlot}
              empty={emptyWords(live)}
            />
          )}
          <p className="picture-legend quieter">
            <span>
              probability <i className="ramp" aria-hidden="true" /> 0 to 1, as the strength of the block's colour
            </span>
            <span>
              <i className="hatched" aria-hidden="true" /> undecided: ahead by no more than chance
            </span>
            <span>click a slot for its history</span>
          </p>
          {view.slot !== null && (
            <SlotHistory
              slot={view.slot}
              slots={slots}
              seeds={histories}
              labels={search.labels}
              look={look}
              until={until.search}
              step={view.step}
              version={version}
              onStep={onStep}
              onSlot={onSlot}
            />
          )}
        </Card>
        <div className="curves">
          <LossCard {...{ live, version, sample, until, loss, step: view.step, onStep }} onLoss={(each) => change({ loss: each })} />
          <CurveCard
            {...{ live, version, sample, until, curve: view.curve, step: view.step, onStep }}
            budgetMs={budgetMs(request, parentMs)}
            onCurve={(each) => change({ curve: each })}
          />
        </div>
      </div>
      {result && <Result result={result} look={look} />}
      {(result || live.rules.length > 0) && (
        <div className="search-found">
          {result && <Model result={result} artifacts={live.artifacts} />}
          {live.rules.map((rule) => (
            <RuleCard key={rule.id} rule={rule} seeds={trials.map((each) => each.seed)} look={look} />
          ))}
        </div>
      )}
      <Trials live={live} version={version} />
    </div>
  );
}

function slotsIn(architecture: Record<string, unknown>): string[] {
  return (architecture["slots"] ?? []) as string[];
}

/** The rows under the bands: what was derived from the shown seeds, the result, the parent. */
function stripsOf(live: Live, shown: readonly Trial[], parent: readonly string[] | null): StripRow[] {
  const rows: StripRow[] = [];
  const seedOf = (trial: string | null) => live.trials.find((each) => each.id === trial)?.seed;
  const row = (each: Live["architectures"][number], name: string, what: string): StripRow => ({
    key: each.id,
    name: `${name}, seed ${seedOf(each.trial) ?? "–"}`,
    title: `${what} of seed ${seedOf(each.trial) ?? "unknown"}`,
    labels: slotsIn(each.architecture),
    undecided: (each.architecture["undecided"] ?? []) as number[],
    strong: each.is_result,
  });
  for (const trial of shown) {
    const own = live.architectures.filter((each) => each.trial === trial.id);
    const budget = own.find((each) => each.role === "budget");
    const argmax = own.find((each) => each.role === "argmax");
    if (argmax && argmax.hash !== budget?.hash) rows.push(row(argmax, "argmax", "most probable architecture"));
    if (budget) rows.push(row(budget, budget.is_result ? "result" : "derived", budget.is_result ? "the result: architecture within the budget" : "architecture within the budget"));
  }
  const result = live.architectures.find((each) => each.is_result);
  if (result && !rows.some((each) => each.key === result.id)) rows.push(row(result, "result", "the result: architecture within the budget"));
  if (parent) rows.push({ key: "parent", name: "parent", title: "the interleaved parent", labels: parent, undecided: [] });
  return rows;
}

/** What the picture waits for. */
function emptyWords(live: Live): string {
  const { state } = live.search;
  if (state === "queued") return "Probabilities appear once the search runs.";
  if (state === "running") return "Blocks are being measured; probabilities come with the first report.";
  return "It ended before the first report, so there are no probabilities.";
}
