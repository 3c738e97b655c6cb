/** The page of one search: head, the picture on its slot axis, curves, result, trials; live while it runs. */

import { useCallback, useEffect, useMemo } from "react";

import type { Catalog, Result as Found, SearchRequest, Trial } from "../api/types";
import { looks, useCatalog } from "../blocks";
import { Link } from "../router";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Empty } from "../ui/Empty";
import { Problem } from "../ui/Problem";
import { CurveCard, LossCard } from "./Curves";
import { DeriveCard } from "./DeriveCard";
import { Guards } from "./Guards";
import { Head } from "./Head";
import { budgetMs, candidatesOf, costsOf, parentOf, predictMs } from "./model/cost";
import { percent } from "./model/format";
import type { Finding } from "./model/findings";
import { hasEnded, type Live, slotsOf } from "./model/live";
import { planned, type Span, spansOf } from "./model/phases";
import { Model } from "./Model";
import { Picture } from "./Picture";
import { Result } from "./Result";
import { RuleCard } from "./RuleCard";
import { SlotHistory } from "./SlotHistory";
import type { StripRow } from "./SlotRow";
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
  const catalog = useCatalog();
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
  if (!live || catalog.loading) {
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
  return <Loaded followed={followed} live={live} catalog={catalog.data} />;
}

function Loaded({ followed, live, catalog }: { followed: Followed; live: Live; catalog: Catalog | undefined }) {
  const { version, table, put, follow, problem, reload } = followed;
  const { search } = live;
  const slots = slotsOf(search);
  const request = search.request as unknown as SearchRequest;
  const running = !hasEnded(search.state);
  const result = search.result as Found | null;
  const [view, change] = useView(slots);
  const look = useMemo(() => looks(catalog, search.request), [catalog, search.id]);

  const sample = view.sample !== null && live.samples.includes(view.sample) ? view.sample : live.defaultSample;
  const trials = live.searchTrials(sample);
  const resultSeed = result?.derived.sample === sample ? result.derived.seed : null;
  // Seeds are known from the request, before there are trials: their places do not move when those come.
  const seeds = trials.length
    ? trials.map((each) => each.seed)
    : Array.from({ length: request.trials.n_seeds }, (_, index) => request.trials.seed + index);
  const chosen = [view.seed, resultSeed].find((each) => each !== null && seeds.includes(each)) ?? seeds[0] ?? 0;
  const shownSeeds = view.folded ? [chosen] : seeds;
  const shown = trials.filter((each) => shownSeeds.includes(each.seed));
  const wanted = view.slot === null ? shown : trials;
  const names = wanted.map((each) => each.id).join();
  useEffect(() => follow(names ? names.split(",") : []), [follow, names]);

  const ids = [...shownSeeds, ...shown.map((each) => each.id)].join();
  const lengths = shown.map((each) => live.framesOf(each.id).steps.at(-1)).join();
  const bands = useMemo(
    () =>
      shownSeeds.map((seed) => {
        const trial = shown.find((each) => each.seed === seed);
        return { seed, frame: trial ? live.framesOf(trial.id).at(view.step) : null };
      }),
    [live, version, ids, view.step],
  );
  const steps = useMemo(
    () => [...new Set(shown.flatMap(({ id }) => live.framesOf(id).steps))].sort((one, other) => one - other),
    [live, version, ids, lengths],
  );
  // Phases and notes of the seed that is looked at; the axis of steps ends where the last trial does.
  const lead = trials.find((each) => each.seed === chosen);
  const phases = useMemo(
    () => new Map(trials.map((each) => [each.id, phasesOf(live, each)])),
    [live, version, trials.map((each) => [each.id, each.state]).join()],
  );
  const ahead = useMemo(() => planned(request, slots), [search.id]);
  const spans = (lead && phases.get(lead.id)) ?? ahead;
  const findings = (lead && live.toldOf(lead.id).warnings) ?? NONE;
  const notes = useMemo(() => findings.map((each) => each.step), [findings, findings.length]);
  const ends = [...phases.values(), spans].map((each) => each.at(-1)?.to ?? 0);
  const until = {
    search: Math.max(...ends, ...trials.map((each) => each.step)),
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
  const strips = useMemo(
    () => stripsOf(live, shownSeeds, shown, parentLabels),
    [live, live.architectures, ids, parentLabels],
  );
  const chosenStrip = strips.find((each) => each.strong) ?? null;

  const onStep = useCallback((step: number | null) => change({ step }), [change]);
  const onSlot = useCallback((slot: number | null) => change({ slot }), [change]);
  const onFound = useCallback(
    ({ step, seed }: Finding) => change(view.folded ? { step, seed } : { step }),
    [change, view.folded],
  );
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
                  <select
                    className="input"
                    value={sample}
                    onChange={(event) => change({ sample: Number(event.target.value), step: null })}
                  >
                    {live.samples.map((each) => (
                      <option key={each} value={each}>
                        {each}
                      </option>
                    ))}
                  </select>
                </label>
              )}
              {seeds.length > 1 && (
                <Choice
                  label="seeds"
                  value={view.folded ? String(chosen) : "all"}
                  onChange={(value) =>
                    change(value === "all" ? { folded: false } : { folded: true, seed: Number(value) })
                  }
                  options={[
                    ...seeds.map((seed) => ({ value: String(seed), words: `seed ${seed}` })),
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
            spans={spans}
            running={running && [null, "measuring", "searching"].includes(search.stage)}
            onStep={onStep}
          />
          <Picture
            labels={search.labels}
            look={look}
            slots={slots}
            bands={bands}
            strips={strips}
            costs={costs}
            weighing={weighingWords(live)}
            costOf={chosenStrip}
            pinned={view.slot}
            onPin={onSlot}
            empty={emptyWords(live)}
          />
          <p className="picture-legend quieter">
            <span>
              probability <i className="ramp" aria-hidden="true" /> 0 to 1, as the strength of the block's colour
            </span>
            <span>
              <i className="hatched" aria-hidden="true" /> undecided: ahead by no more than chance, or tied with a cheaper
              block
            </span>
            <span>
              <i className="striped" aria-hidden="true" /> striped: the gradient is within noise (z below 2), or its slot
              is undecided
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
              {...{ spans, onStep, onSlot }}
            />
          )}
        </Card>
        <div className="curves">
          <LossCard
            {...{ live, version, sample, until, spans, notes, loss, step: view.step, onStep }}
            onLoss={(each) => change({ loss: each })}
          />
          <CurveCard
            {...{ live, version, sample, until, spans, notes, curve: view.curve, step: view.step, onStep }}
            budgetMs={budgetMs(request, parentMs)}
            onCurve={(each) => change({ curve: each })}
          />
          <Guards {...{ live, version, trials, onFound }} />
        </div>
      </div>
      {result && <Result result={result} look={look} />}
      {(result || live.rules.length > 0) && (
        <div className="search-found">
          {result && (
            <Model
              result={result}
              artifacts={live.artifacts}
              synthetic={catalog?.tasks.some((each) => each.name === result.search["dataset"]) ?? false}
            />
          )}
          {live.rules
            .filter((rule) => !("kind" in rule.evidence))
            .map((rule) => (
              <RuleCard
                key={rule.id}
                rule={rule}
                statements={live.rules.filter((each) => "kind" in each.evidence)}
                seeds={trials.map((each) => each.seed)}
                look={look}
              />
            ))}
        </div>
      )}
      {steps.length > 0 && <DeriveCard {...{ id: search.id, sample, look }} />}
      <Trials live={live} version={version} />
    </div>
  );
}

function slotsIn(architecture: Record<string, unknown>): string[] {
  return (architecture["slots"] ?? []) as string[];
}

/** The rows under the bands: what was derived from the shown seeds, the result, the parent; empty until it is there. */
function stripsOf(
  live: Live,
  seeds: readonly number[],
  shown: readonly Trial[],
  parent: readonly string[] | null,
): StripRow[] {
  const rows: StripRow[] = [];
  const add = (role: "argmax" | "budget", seed: number | undefined, found: Live["architectures"][number] | undefined) =>
    rows.push({
      key: `${role}-${seed}`,
      name: `${found?.is_result ? "result" : role === "budget" ? "derived" : role}, seed ${seed ?? "–"}`,
      title: found?.is_result ? "the result: the derived architecture that validates best" : ROLES[role],
      labels: found ? slotsIn(found.architecture) : null,
      undecided: (found?.architecture["undecided"] ?? []) as number[],
      strong: found?.is_result ?? false,
    });
  for (const seed of seeds) {
    const trial = shown.find((each) => each.seed === seed);
    for (const role of ["argmax", "budget"] as const) {
      add(
        role,
        seed,
        live.architectures.find((each) => trial && each.trial === trial.id && each.role === role),
      );
    }
  }
  const result = live.architectures.find((each) => each.is_result);
  if (result && !rows.some((each) => each.strong)) {
    add("budget", live.trials.find((each) => each.id === result.trial)?.seed, result);
  }
  if (parent)
    rows.push({ key: "parent", name: "parent", title: "the interleaved parent", labels: parent, undecided: [] });
  return rows;
}

const ROLES = {
  argmax: "the most probable block of each slot",
  budget: "the most probable architecture within the budget, tied slots with their cheapest block",
};

const NONE: readonly never[] = [];

function phasesOf(live: Live, trial: Trial): Span[] {
  const plan = planned(live.search.request as unknown as SearchRequest, slotsOf(live.search), trial.params);
  return spansOf(live.toldOf(trial.id).steps, plan, hasEnded(trial.state));
}

/** What stands in place of what blocks buy, until there is any; null where nothing is weighed, as in older searches. */
function weighingWords(live: Live): string | null {
  const { prune_steps: steps = 0 } = live.search.request["method"] as { prune_steps?: number };
  if (!steps) return null;
  return hasEnded(live.search.state)
    ? "No block was weighed at this step."
    : "What each block buys is measured in the prune phase.";
}

/** What the picture waits for. */
function emptyWords(live: Live): string {
  const { state, stage } = live.search;
  if (state === "queued") return "Probabilities appear once the search runs.";
  if (state === "running") {
    return stage === "measuring"
      ? "Blocks are being measured; probabilities come after that."
      : "Probabilities come with the first report.";
  }
  return "It ended before the first report, so there are no probabilities.";
}
