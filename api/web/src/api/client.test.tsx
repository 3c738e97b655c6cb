// @vitest-environment happy-dom
/** Answers that a page keeps fresh: what comes late, what comes not at all, and who was signed in when it was asked. */

import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { draw, type Drawn, pass, type Service, show, standIn } from "../testing/service";
// Behind it: the page.
import { api, type Query, sent, useQuery } from "./client";
import { connection, session, useAway, useLocked } from "./connection";

const AGAIN = 2000;
const POLL = 500;

let service: Service;
let drawn: Drawn;
let query: Query<unknown>;
let page: { away: boolean; locked: boolean };

function watch(every: number | null = null): void {
  const Probe = () => {
    query = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }), { every });
    page = { away: useAway(), locked: useLocked() };
    return null;
  };
  drawn = draw(<Probe />);
}

beforeEach(() => {
  service = standIn();
});
afterEach(() => {
  drawn.end();
  act(() => connection.found());
  vi.useRealTimers();
});

const datasets = (name: string) => ({ items: [{ name }], next: null });

test("what found nobody is asked again when the tab is looked at", async () => {
  watch();
  await pass();
  service.question("/datasets").fail();
  await pass();
  show("hidden");
  await pass(10 * AGAIN);
  expect(service.open).toEqual([]);
  show("visible");
  await pass();
  service.question("/datasets").answer(datasets("a"));
  await pass();
  expect(query.data).toEqual(datasets("a"));
});

test.each([502, 503, 504])("a %i of whoever stands before a service that restarts is asked again", async (status) => {
  watch();
  await pass();
  service.question("/datasets").answer({}, status);
  await pass();
  expect(query.problem?.status).toBe(status);
  await pass(AGAIN);
  service.question("/datasets").answer(datasets("a"));
  await pass();
  expect(query).toMatchObject({ data: datasets("a"), problem: null });
});

test.each([404, 500])("a %i is no reason to ask again", async (status) => {
  watch();
  await pass();
  service.question("/datasets").answer({}, status);
  await pass(10 * AGAIN);
  expect(service.open).toEqual([]);
});

test("an answer that a newer one has overtaken is left out", async () => {
  watch(POLL);
  await pass();
  service.question("/datasets").answer(datasets("a"));
  await pass(POLL);
  const slow = service.question("/datasets");
  show("hidden");
  show("visible");
  await pass();
  service.open.find((each) => each !== slow)?.answer(datasets("c"));
  await pass();
  slow.answer(datasets("b"));
  await pass();
  expect(query.data).toEqual(datasets("c"));
});

test("the page looks for a service that did not answer, until it does", async () => {
  watch();
  await pass();
  service.question("/datasets").answer(datasets("a"));
  await pass();
  act(() => connection.lost()); // such as of a click
  expect(page.away).toBe(true);
  await pass(AGAIN);
  service.question("/healthz").fail();
  await pass(AGAIN);
  service.question("/healthz").answer({}, 502);
  await pass();
  expect(page.away).toBe(true);
  await pass(AGAIN);
  service.question("/healthz").answer({});
  await pass();
  expect(page.away).toBe(false);
  await pass(10 * AGAIN);
  expect(service.open).toEqual([]);
});

test("what was refused before a sign-in does not ask for another", async () => {
  watch();
  await pass();
  service.question("/datasets").answer({}, 401);
  await pass();
  expect(page.locked).toBe(true);
  const refused = sent(api.POST("/api/v1/searches", { body: {} as never })).catch(() => undefined);
  await pass();
  act(session.opened);
  service.question("/searches").answer({}, 401);
  await act(() => refused);
  expect(page.locked).toBe(false);
  service.question("/datasets").answer({}, 401); // asked since
  await pass();
  expect(page.locked).toBe(true);
  act(session.opened);
});
