// @vitest-environment happy-dom
/** A search as the page follows it, whatever the order in which answers, events and clicks arrive. */

import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { draw, type Drawn, pass, type Question, type Service, show, standIn } from "../testing/service";
// Behind it: the page.
import { session } from "../api/connection";
import type { Search } from "../api/types";
import { type Followed, useSearch } from "./useSearch";

const SOON = 100;
const LATER = 2000;

const searchAs = (more: object = {}) =>
  ({
    id: "s", name: "tiny", state: "running", stage: "searching", cancelling: false, reason: null, labels: ["a", "b"],
    last_event: 3, latency_table: null, result: null, progress: { step: 0, n_steps: 100, share: 0, eta_s: null },
    request: { space: { n_slots: 2 }, method: { n_steps: 100, report_every: 10 }, retrain: { n_steps: 10 } }, ...more,
  }) as unknown as Search; // prettier-ignore
const trial = (id: string, state: string) => ({ id, kind: "search", sample: 0, seed: 0, state, step: 0, n_steps: 100 });

let service: Service;
let drawn: Drawn;
let followed: Followed;
/** What the service has now. */
let search: Search;
let lists: Record<string, object[]>;
/** Ends of the paths whose questions stay open. */
let slow: string[];

function reply(question: Question): void {
  const { path, answer } = question;
  if (slow.some((end) => path.endsWith(end))) return;
  if (path.endsWith("/searches/s")) answer(search);
  else if (path.includes("/latency-tables/")) answer({ id: path.split("/").at(-1) });
  else answer({ items: lists[path.split("/").at(-1) ?? ""] ?? [], next: null });
}

async function follow(): Promise<void> {
  const Probe = () => {
    followed = useSearch("s");
    return null;
  };
  drawn = draw(<Probe />);
  await pass();
}

beforeEach(() => {
  service = standIn();
  service.reply = reply;
  search = searchAs();
  lists = { trials: [trial("t", "running"), trial("u", "queued")] };
  slow = [];
});
afterEach(() => {
  drawn.end();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the latency table of a search that is watched from its beginning is loaded once it is measured", async () => {
  await follow();
  expect(followed.table).toBeNull();
  search = searchAs({ last_event: 4, latency_table: "T" });
  service.stream.tell(4, "latency_table", { id: "T" });
  await pass(SOON);
  expect(followed.table).toEqual({ id: "T" });
});

test("a trial that ends while an older answer is under way stays ended", async () => {
  await follow();
  slow = ["/trials"];
  service.stream.tell(4, "trial", { trial: "u", state: "running", reason: null });
  await pass(SOON);
  const before = service.question("/trials");
  service.stream.tell(5, "trial", { trial: "t", state: "succeeded", reason: null });
  before.answer({ items: lists["trials"] });
  slow = [];
  lists["trials"] = [trial("t", "succeeded"), trial("u", "running")];
  await pass(SOON);
  await pass(SOON);
  expect(followed.live?.trials.map(({ state }) => state)).toEqual(["succeeded", "running"]);
});

test("what the first look asked for does not come after what an event asked for", async () => {
  slow = ["/artifacts"];
  await follow();
  const first = service.question("/artifacts");
  search = searchAs({ state: "succeeded", last_event: 5 });
  service.stream.tell(4, "artifact");
  service.stream.tell(5, "succeeded");
  await pass(SOON);
  lists["artifacts"] = [{ id: "m", kind: "export", name: "export.zip" }];
  slow = [];
  for (const each of service.open.filter((question) => question !== first)) reply(each);
  first.answer({ items: [] });
  await pass(LATER);
  expect(followed.live?.artifacts).toHaveLength(1);
});

test("what was asked for before everything is read anew does not hold up what comes then", async () => {
  await follow();
  const { live } = followed;
  const before = service.stream;
  slow = ["/searches/s"];
  act(session.opened); // somebody has signed in
  await pass();
  const again = service.question("/searches/s");
  before.tell(4, "stage", { stage: "exporting" });
  await pass(SOON / 2);
  slow = [];
  search = searchAs({ stage: "exporting", last_event: 4 });
  again.answer(search);
  await pass();
  expect(followed.live).not.toBe(live);
  search = searchAs({ state: "succeeded", result: { found: 1 }, last_event: 5 });
  service.stream.tell(5, "succeeded");
  await pass(SOON);
  expect(followed.live?.search.result).toEqual({ found: 1 });
});

test("the answer to a resume is taken where everything was read anew meanwhile", async () => {
  search = searchAs({ state: "cancelled", last_event: 9 });
  await follow();
  const { put } = followed; // by a click before
  act(session.opened);
  await pass();
  put(searchAs({ state: "queued", last_event: 10 }));
  await pass();
  expect(followed.live?.search.state).toBe("queued");
});

test("a search that was resumed elsewhere is seen when the tab is looked at, and followed again", async () => {
  search = searchAs({ state: "cancelled", last_event: 9 });
  await follow();
  expect(() => service.stream).toThrow("nothing is followed");
  show("hidden");
  search = searchAs({ last_event: 14 });
  await pass(LATER);
  show("visible");
  await pass(SOON);
  expect(followed.live?.search.state).toBe("running");
  expect(service.stream.url).toContain("after=9");
});

test("an answer that an event overtook is asked for again, so that nothing of it is missing", async () => {
  await follow();
  slow = ["/searches/s"];
  service.stream.tell(4, "estimate");
  await pass(SOON);
  service.stream.tell(5, "warning", { message: "beware" });
  service.question("/searches/s").answer(searchAs({ last_event: 4, attempt: 2 }));
  await pass();
  expect(followed.live?.search.attempt).not.toBe(2);
  slow = [];
  search = searchAs({ last_event: 5, attempt: 2 });
  await pass(LATER);
  expect(followed.live?.search.attempt).toBe(2);
  const { length } = service.asked;
  await pass(10 * LATER);
  expect(service.asked).toHaveLength(length); // and not for ever
});

test("a part is asked for again once the service is back", async () => {
  await follow();
  slow = ["/artifacts"];
  service.stream.tell(4, "artifact");
  await pass(SOON);
  service.question("/artifacts").fail();
  await pass();
  expect(followed.problem?.status).toBe(0);
  slow = [];
  lists["artifacts"] = [{ id: "m" }];
  await pass(LATER + SOON);
  expect(followed.live?.artifacts).toHaveLength(1);
  expect(followed.problem).toBeNull();
});
