/** How far a search is on its way, in stages. */

import type { Live } from "./live";

export const STAGES = ["measuring", "searching", "deriving", "retraining", "exporting"] as const;
export type StageState = "done" | "now" | "stopped" | "ahead";

export const STAGE_WORDS: Record<string, string> = {
  measuring: "measure what each block costs on this machine",
  searching: "train the supernet and the probabilities, seed by seed",
  deriving: "fix a block for each slot, within the budget",
  retraining: "train the derived architectures and the parent afresh",
  diagnosing: "look for collapse",
  exporting: "compare on test, write the model",
};

/** The furthest stage that has left something: a search that ended says no stage any more. */
export function reached(live: Pick<Live, "search" | "trials" | "architectures" | "artifacts">): string {
  if (live.search.stage) return live.search.stage;
  if (live.artifacts.length) return "exporting";
  if (live.trials.some((trial) => trial.kind === "retrain")) return "retraining";
  if (live.architectures.length) return "deriving";
  if (live.trials.length) return "searching";
  return "measuring";
}

export interface Step {
  name: string;
  state: StageState;
  /** Known once the search has succeeded. */
  seconds: number | null;
}

export function stepsOf(live: Pick<Live, "search" | "trials" | "architectures" | "artifacts">): Step[] {
  const { search } = live;
  const at = reached(live);
  // A stage that this version does not know stands where it is told, not left out.
  const names: string[] = (STAGES as readonly string[]).includes(at)
    ? [...STAGES]
    : [...STAGES.slice(0, -1), at, "exporting"];
  const place = names.indexOf(at);
  const seconds = (search.result?.["seconds"] ?? {}) as Record<string, number>;
  const begun = search.started_at !== null;
  return names.map((name, index) => ({
    name,
    seconds: seconds[name] ?? null,
    state:
      search.state === "succeeded" || (begun && index < place)
        ? "done"
        : !begun || index > place
          ? "ahead"
          : search.state === "running"
            ? "now"
            : search.state === "queued" // again, after a restart or a resume: it goes on there
              ? "ahead"
              : "stopped",
  }));
}
