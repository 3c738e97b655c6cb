import { expect, test } from "vitest";

import type { SearchEvent } from "../../api/events";
import type { Search, Trial } from "../../api/types";
import { Live } from "./live";

const search = {
  id: "s",
  name: "tiny",
  state: "running",
  stage: "searching",
  cancelling: false,
  reason: null,
  labels: ["attention", "ffn"],
  last_event: 10,
  started_at: "2026-11-29T18:00:00.000Z",
  finished_at: null,
  request: { space: { n_slots: 2 } },
  result: null,
} as unknown as Search;

const trial = (id: string, more: Partial<Trial> = {}) =>
  ({ id, kind: "search", sample: 0, seed: 0, state: "running", step: 0, n_steps: 100, ...more }) as Trial;

const event = (number: number, type: string, data: Record<string, unknown> = {}): SearchEvent => ({
  number,
  type,
  at: "2026-11-29T18:01:00.000Z",
  data,
});

const row = (step: number, first = 0.5) => ({
  step,
  train_loss: 2,
  probabilities: [
    [first, 1 - first],
    [0.5, 0.5],
  ],
  null_gaps: [0.1, 0.1],
});

const reports = (number: number, ...rows: ReturnType<typeof row>[]) =>
  event(number, "reports", {
    trial: "t",
    first_step: rows[0]?.step,
    last_step: rows.at(-1)?.step,
    reports: rows,
  });

function running(): Live {
  const live = new Live(search);
  live.setTrials([trial("t")]);
  live.followed.add("t");
  return live;
}

test("a report moves the curve, the frames and the trial, and asks for the search's progress alone", () => {
  const live = running();
  expect(live.tell(reports(11, row(25), row(50)))).toEqual(["search"]);
  expect(live.curveOf("t").steps).toEqual([25, 50]);
  expect(live.framesOf("t").steps).toEqual([25, 50]);
  expect(live.trials[0]?.step).toBe(50);
});

test("what was loaded and is told again stands once", () => {
  const live = running();
  live.addReports([{ trial: "t", step: 25, train_loss: 3 } as never]);
  live.addProbabilities([{ trial: "t", step: 25, probabilities: row(25, 0.9).probabilities, null_gaps: null }]);
  live.tell(reports(11, row(25), row(50)));
  expect(live.curveOf("t").steps).toEqual([25, 50]);
  expect(live.curveOf("t").values.train_loss).toEqual([3, 2]);
  expect(live.framesOf("t").at(25)?.probabilities[0]?.[0]).toBe(0.9);
});

test("an event that was told before changes nothing", () => {
  const live = running();
  live.tell(event(11, "stage", { stage: "deriving" }));
  const { version } = live;
  expect(live.tell(event(11, "stage", { stage: "searching" }))).toEqual([]);
  expect(live.search.stage).toBe("deriving");
  expect(live.version).toBe(version);
});

test("of a trial that nobody looks at only the newest frame is kept", () => {
  const live = running();
  live.followed.clear();
  live.tell(reports(11, row(25), row(50)));
  live.tell(reports(12, row(75)));
  expect(live.framesOf("t").steps).toEqual([75]);
  expect(live.curveOf("t").steps).toEqual([25, 50, 75]);
});

test("an unknown trial makes the trials stale", () => {
  const live = running();
  expect(live.tell(event(11, "trial", { trial: "new", state: "queued", reason: null }))).toEqual(["trials"]);
});

test("a trial that failed keeps its reason", () => {
  const live = running();
  live.tell(event(11, "trial", { trial: "t", state: "failed", reason: "loss is not finite at step 30" }));
  expect(live.trials[0]).toMatchObject({ state: "failed", reason: "loss is not finite at step 30" });
  expect(live.trials[0]?.finished_at).not.toBeNull();
});

test("an older answer about trials does not take steps back", () => {
  const live = running();
  live.tell(reports(11, row(50)));
  live.setTrials([trial("t", { step: 25 })]);
  expect(live.trials[0]?.step).toBe(50);
});

test("an answer that is older than an event changes no state", () => {
  const live = running();
  live.tell(event(12, "stage", { stage: "deriving" }));
  live.setSearch({ ...search, last_event: 11, progress: { step: 7 } } as unknown as Search);
  expect(live.search).toMatchObject({ stage: "deriving", progress: { step: 7 } });
  live.setSearch({ ...search, last_event: 13, stage: "exporting" });
  expect(live.search.stage).toBe("exporting");
});

test("an answer that is older than a resume leaves the search resumed", () => {
  const live = running();
  live.tell(event(11, "cancelled"));
  live.setSearch({ ...search, state: "queued", last_event: 12 }); // what the resume answers, ahead of its event
  live.setSearch({ ...search, state: "cancelled", last_event: 11 }); // asked for when the cancelling was told
  expect(live.search).toMatchObject({ state: "queued", last_event: 12 });
  live.tell(event(12, "queued"));
  live.setSearch({ ...search, state: "running", last_event: 13 });
  expect(live.search.state).toBe("running");
});

test("the end of a search asks for everything that its end brings", () => {
  const live = running();
  expect(live.tell(event(11, "failed", { reason: "no slot moved beyond chance" }))).toContain("artifacts");
  expect(live.search).toMatchObject({ state: "failed", reason: "no slot moved beyond chance" });
  expect(live.tell(event(12, "queued"))).toContain("search");
  expect(live.search).toMatchObject({ state: "queued", reason: null, finished_at: null });
});

test("an estimate asks for the search, which tells it", () => {
  expect(running().tell(event(11, "estimate", { seconds: 85 }))).toEqual(["search"]);
});

test("warnings that were loaded and those that are told stand once, in order", () => {
  const live = running();
  live.tell(event(12, "warning", { message: "late" }));
  live.setWarnings([event(3, "warning", { message: "early" }), event(12, "warning", { message: "late" })]);
  live.tell(event(13, "warning", { message: "later" }));
  expect(live.warnings.map((each) => each.message)).toEqual(["early", "late", "later"]);
});

test("the sample shown is the result's, else the newest that has begun", () => {
  const live = running();
  live.setTrials([trial("a", { sample: 0, step: 9 }), trial("b", { sample: 1, step: 3 }), trial("c", { sample: 2 })]);
  expect(live.defaultSample).toBe(1);
  live.setSearch({ ...search, last_event: 11, result: { search: { sample: 0 } } } as unknown as Search);
  expect(live.defaultSample).toBe(0);
  expect(live.samples).toEqual([0, 1, 2]);
});
