/**
 * One search as it is known so far: read by REST, then kept up by its events.
 *
 * Rows and matrices live in columns that grow in place; `version` counts what has changed, so that a component draws
 * anew only where its part moved. Nothing here knows the browser.
 */

import type { SearchEvent } from "../../api/events";
import type { Architecture, Artifact, Report, Rule, Search, Trial } from "../../api/types";
import { Curve, type CurveRow } from "./curve";
import { frameOf, type FrameRow, Frames, framesToKeep } from "./frames";
import { Told, type TellingRow } from "./told";

/** Answers of the service that an event made stale. */
export type Part = "search" | "trials" | "architectures" | "rules" | "artifacts" | "table" | "warnings";

export interface Warning {
  number: number;
  at: string;
  message: string;
  /** Of a guard's: the trial that it speaks of, and at which step of it. */
  trial: string | null;
  step: number | null;
}

type StreamedRow = CurveRow & TellingRow & Omit<FrameRow, "probabilities"> & { probabilities?: FrameRow["probabilities"] | null };

const ENDED = new Set(["succeeded", "failed", "cancelled"]);
export const hasEnded = (state: string) => ENDED.has(state);
const WARNINGS = 200;

export class Live {
  search: Search;
  trials: Trial[] = [];
  architectures: Architecture[] = [];
  rules: Rule[] = [];
  artifacts: Artifact[] = [];
  warnings: Warning[] = [];
  readonly curves = new Map<string, Curve>();
  readonly frames = new Map<string, Frames>();
  readonly told = new Map<string, Told>();
  /** Trials whose every frame is kept, because they are looked at. */
  readonly followed = new Set<string>();
  /** Number of the newest event that is in here. */
  seen: number;
  version = 0;
  private readonly wanted: number;

  constructor(search: Search) {
    this.search = search;
    this.seen = search.last_event;
    this.wanted = framesToKeep(slotsOf(search), search.labels.length);
  }

  // -- answers of the service -----------------------------------------------------------------------------------------

  setSearch(search: Search): void {
    // Answers cross: one given before an event, or before a cancel or resume, that is in here knows less of the state.
    const known = Math.max(this.seen, this.search.last_event);
    this.search = search.last_event < known ? { ...this.search, progress: search.progress } : search;
    this.version++;
  }

  /** Whether an event has told of more than the newest answer about the search knows. */
  get isBehind(): boolean {
    return this.search.last_event < this.seen;
  }

  setTrials(trials: Trial[]): void {
    // An event may have told of a step that this answer, asked for earlier, does not have yet.
    const before = new Map(this.trials.map((trial) => [trial.id, trial.step]));
    this.trials = trials.map((trial) => ({ ...trial, step: Math.max(trial.step, before.get(trial.id) ?? 0) }));
    this.version++;
  }

  set<Key extends "architectures" | "rules" | "artifacts">(part: Key, rows: Live[Key]): void {
    (this as Pick<Live, Key>)[part] = rows;
    this.version++;
  }

  setWarnings(events: readonly { number: number; at: string; data: Record<string, unknown> }[]): void {
    const told = this.warnings.filter((each) => each.number > (events.at(-1)?.number ?? 0));
    this.warnings = [...events.map(warningOf), ...told].slice(-WARNINGS);
    this.version++;
  }

  addReports(rows: readonly Report[]): void {
    for (const row of rows) {
      this.curveOf(row.trial).add(row);
      this.toldOf(row.trial).add(row);
    }
    this.version++;
  }

  addProbabilities(rows: readonly (FrameRow & { trial: string })[]): void {
    for (const row of rows) this.framesOf(row.trial).add(frameOf(row));
    this.version++;
  }

  // -- events ---------------------------------------------------------------------------------------------------------

  /** Take an event in; returns what must be asked for again. An event that was told before changes nothing. */
  tell(event: SearchEvent): Part[] {
    if (event.number <= this.seen) return [];
    this.seen = event.number;
    const { data, type } = event;
    this.version++;
    switch (type) {
      case "reports":
        return this.tellReports(data as { trial: string; last_step: number; reports?: StreamedRow[] });
      case "trial":
        return this.tellTrial(data as { trial: string; state: string; reason: string | null }, event.at);
      case "warning":
        this.addWarning(event);
        return [];
      case "queued":
      case "requeued":
        this.search = {
          ...this.search,
          state: "queued",
          stage: null,
          cancelling: false,
          reason: null,
          finished_at: null,
        };
        return ["search", "trials"];
      case "started":
        this.search = { ...this.search, state: "running", started_at: this.search.started_at ?? event.at };
        return ["search"];
      case "stage":
        this.search = { ...this.search, state: "running", stage: String(data["stage"]) };
        return ["search"];
      case "cancelling":
        this.search = { ...this.search, cancelling: true };
        return ["search"];
      case "succeeded":
      case "failed":
      case "cancelled": {
        const reason = typeof data["reason"] === "string" ? data["reason"] : null;
        this.search = { ...this.search, state: type, reason, cancelling: false, finished_at: event.at };
        return ["search", "trials", "architectures", "rules", "artifacts"];
      }
      case "latency_table":
        this.search = { ...this.search, latency_table: String(data["id"]) }; // the table is asked for by it
        return ["search", "table"];
      case "architecture":
        return ["architectures"];
      case "rule":
        return ["rules"];
      case "artifact":
        return ["artifacts"];
      case "estimate":
      case "result":
        return ["search"];
      default:
        return []; // checkpoint, and what a newer service may tell
    }
  }

  private tellReports(data: { trial: string; last_step: number; reports?: StreamedRow[] }): Part[] {
    const curve = this.curveOf(data.trial);
    for (const row of data.reports ?? []) {
      curve.add(row);
      this.toldOf(data.trial).add(row);
      if (!row.probabilities) continue;
      const frame = frameOf({ ...row, probabilities: row.probabilities });
      if (this.followed.has(data.trial)) this.framesOf(data.trial).add(frame);
      else this.framesOf(data.trial).keepNewest(frame);
    }
    return this.changeTrial(data.trial, (trial) => ({ ...trial, step: Math.max(trial.step, data.last_step) }))
      ? ["search"]
      : ["search", "trials"];
  }

  private tellTrial(data: { trial: string; state: string; reason: string | null }, at: string): Part[] {
    const { state, reason } = data;
    this.changeTrial(data.trial, (trial) => ({
      ...trial,
      state,
      reason,
      started_at: trial.started_at ?? (state === "running" ? at : null),
      finished_at: state === "queued" || state === "running" ? null : at,
    }));
    return ["trials"]; // its attempt changes with its start, and an answer of before may still be under way
  }

  private changeTrial(id: string, change: (trial: Trial) => Trial): boolean {
    const at = this.trials.findIndex((trial) => trial.id === id);
    const trial = this.trials[at];
    if (!trial) return false;
    this.trials = this.trials.with(at, change(trial));
    return true;
  }

  private addWarning(event: SearchEvent): void {
    this.warnings = [...this.warnings, warningOf(event)].slice(-WARNINGS);
  }

  // -- looking --------------------------------------------------------------------------------------------------------

  curveOf(trial: string): Curve {
    let found = this.curves.get(trial);
    if (!found) this.curves.set(trial, (found = new Curve()));
    return found;
  }

  toldOf(trial: string): Told {
    let found = this.told.get(trial);
    if (!found) this.told.set(trial, (found = new Told()));
    return found;
  }

  framesOf(trial: string): Frames {
    let found = this.frames.get(trial);
    if (!found) this.frames.set(trial, (found = new Frames(this.wanted)));
    return found;
  }

  /** Samples of hyper-parameters that have search trials, in order. */
  get samples(): number[] {
    return [...new Set(this.trials.filter((each) => each.kind === "search").map((each) => each.sample))].sort(
      (one, other) => one - other,
    );
  }

  /** The sample to show where nobody chose one: the result's, else the newest that has begun. */
  get defaultSample(): number {
    const best = (this.search.result?.["search"] as { sample?: number } | undefined)?.sample;
    if (best !== undefined) return best;
    const begun = this.trials.filter((each) => each.kind === "search" && each.step > 0).map((each) => each.sample);
    return begun.length ? Math.max(...begun) : (this.samples[0] ?? 0);
  }

  /** Search trials of a sample, by seed. */
  searchTrials(sample: number): Trial[] {
    return this.trials
      .filter((each) => each.kind === "search" && each.sample === sample)
      .sort((one, other) => one.seed - other.seed);
  }

  get retrainTrials(): Trial[] {
    return this.trials.filter((each) => each.kind === "retrain");
  }
}

const warningOf = ({ number, at, data }: { number: number; at: string; data: Record<string, unknown> }): Warning => ({
  number,
  at,
  message: String(data["message"] ?? ""),
  trial: typeof data["trial"] === "string" ? data["trial"] : null,
  step: typeof data["step"] === "number" ? data["step"] : null,
});

export function slotsOf(search: Search): number {
  const space = search.request["space"] as { n_slots?: number } | undefined;
  return space?.n_slots ?? 1;
}
