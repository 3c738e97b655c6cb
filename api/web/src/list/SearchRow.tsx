/** One search in a row: what it is, how far, what leads, how good. Every value keeps its place while it changes. */

import { useMemo } from "react";

import type { Catalog, Search } from "../api/types";
import { looks } from "../blocks";
import { Link } from "../router";
import { count, duration, fixed } from "../ui/format";
import { Progress, timeLeft } from "../ui/Progress";
import { StateBadge } from "../ui/StateBadge";
import { BlankStrip, Strip } from "../ui/Strip";
import { Time } from "../ui/Time";

export function SearchRow({ search, catalog }: { search: Search; catalog: Catalog | undefined }) {
  const { space, task } = shapeOf(search);
  const look = useMemo(() => looks(catalog, search.request), [catalog, search.id]);
  return (
    <Link href={`/searches/${search.id}`} className="list-row">
      <span className="list-name">
        <strong title={search.name}>{search.name}</strong>
        <span className="quieter">
          {task.dataset} · {space.n_slots} slots · width {count(space.d_model)}
        </span>
      </span>
      <span className="list-state">
        <StateBadge state={search.state} cancelling={search.cancelling} />
      </span>
      <span className="list-strip">
        {search.strip ? (
          <Strip
            labels={shownLabels(search.strip)}
            undecided={search.strip.undecided}
            look={look}
            title={search.strip.source === "derived" ? "derived architecture" : "leading blocks"}
          />
        ) : (
          <BlankStrip n={space.n_slots} />
        )}
      </span>
      <span className="list-progress">
        <Progress share={shareOf(search)} state={search.state} label={`progress of ${search.name}`} />
        <Standing search={search} />
      </span>
      <span className="list-best">
        {search.best ? (
          <>
            <strong>{fixed(search.best.bits_per_byte, 3)}</strong>
            <span className="quieter">
              {search.best.unit}, {search.best.what}
            </span>
          </>
        ) : (
          <span className="quieter">–</span>
        )}
      </span>
      <span className="list-when quiet">
        <Time at={search.created_at} />
      </span>
    </Link>
  );
}

/** The line below the bar: stage and time left, how long it took, or why it failed. */
function Standing({ search }: { search: Search }) {
  if (search.state === "failed") {
    return (
      <span className="quieter list-reason" title={search.reason ?? undefined}>
        {search.reason}
      </span>
    );
  }
  const [left, right] = standing(search);
  return (
    <span className="quieter">
      <span>{left}</span>
      <span>{right}</span>
    </span>
  );
}

export function standing(
  search: Pick<Search, "state" | "stage" | "progress" | "started_at" | "finished_at">,
): [string, string] {
  const { state, stage, progress, started_at, finished_at } = search;
  const percent = progress.share > 0 && progress.share < 0.01 ? "<1%" : `${Math.floor(progress.share * 100)}%`;
  if (state === "queued") return progress.step > 0 ? ["waits to go on", percent] : ["waits for a free place", ""];
  if (state === "running") return [`${stage ?? "starting"}, ${percent}`, timeLeft(progress.eta_s)];
  const took = started_at && finished_at ? (Date.parse(finished_at) - Date.parse(started_at)) / 1000 : null;
  if (state === "succeeded") return ["finished", took === null ? "" : `took ${duration(took)}`];
  if (stage) return [`stopped while ${stage}`, percent];
  return progress.step > 0 ? ["stopped while it waited", percent] : ["never started", ""];
}

/** Of a search under way an undecided slot names no block: what leads there leads by chance. */
export function shownLabels(strip: NonNullable<Search["strip"]>): string[] {
  if (strip.source === "derived") return strip.labels;
  return strip.labels.map((label, slot) => (strip.undecided.includes(slot) ? "" : label));
}

/** A finished search is full, however many retrainings its estimate had counted. */
const shareOf = (search: Search) => (search.state === "succeeded" ? 1 : search.progress.share);

interface Shape {
  space: { n_slots: number; d_model: number };
  task: { dataset: string };
}

/** The parts of the request that a row shows; the service stores it with every default written out. */
const shapeOf = (search: Search) => search.request as unknown as Shape;
