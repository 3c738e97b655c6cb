// @vitest-environment happy-dom
/** The page of a new search, whatever the order in which answers and clicks arrive. */

import { act } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { draw, type Drawn, pass, type Question, type Service, standIn } from "../testing/service";
// Behind it: the page.
import { session } from "../api/connection";
import { navigate, useLocation } from "../router";
import catalog from "./catalog.json";
import { NewPage } from "./NewPage";

const REVIEWS = {
  name: "reviews", kind: "documents", description: "", built_in: false, n_bytes: 1000, in_use_by: [], fingerprint: "f",
  created_at: "2026-12-01T00:00:00Z",
  card: { label_kind: "sequence", labels: { bad: 1, good: 1 }, settings: { kind: "documents" } },
}; // prettier-ignore
const EARLIER = { id: "X", name: "earlier", request: { ...catalog.presets.quickstart, name: "of-earlier" } };

let service: Service;
let drawn: Drawn;

function reply({ method, path, answer }: Question): void {
  if (method !== "GET") return;
  if (path.endsWith("/catalog")) answer(catalog);
  else if (path.endsWith("/datasets")) answer({ items: [REVIEWS], next: null });
  else if (path.endsWith("/searches/X")) answer(EARLIER);
  else answer({ items: [], next: null });
}

/** The address decides, as on the whole page. */
function Page() {
  return useLocation().path === "/new" ? <NewPage /> : null;
}

const request = () => {
  const text = drawn.at.querySelector<HTMLTextAreaElement>(".json textarea")?.value;
  return text === undefined ? null : (JSON.parse(text) as { name: string; task: { objective: string } });
};
const button = (words: string) => {
  const found = [...drawn.at.querySelectorAll("button")].find(({ textContent }) => textContent === words);
  if (!found) throw new Error(`no button ${words}: ${drawn.at.textContent}`);
  return found;
};
const click = (words: string) => act(() => button(words).click());
const go = async (url: string) => {
  act(() => navigate(url));
  await pass();
};
const type = (name: string) =>
  act(() => {
    const field = drawn.at.querySelector<HTMLInputElement>("[id='field/name']")!;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!.call(field, name);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new FocusEvent("focusout", { bubbles: true }));
  });

beforeEach(async () => {
  service = standIn();
  service.reply = reply;
  window.history.replaceState(null, "", "/");
  drawn = draw(<Page />);
  await pass();
});
afterEach(() => {
  drawn.end();
  vi.useRealTimers();
});

test("a form of a dataset waits for the datasets, also where they come late behind a sign-in", async () => {
  service.reply = ({ answer }) => answer({}, 401);
  await go("/new?dataset=reviews");
  service.reply = (question) => (question.path.endsWith("/datasets") ? undefined : reply(question));
  act(session.opened);
  await pass();
  expect(request()).toBeNull();
  reply(service.question("/datasets"));
  await pass();
  expect(request()?.task.objective).toBe("sequence_classification");
});

test("what was put aside comes back, also where its page has to load an earlier search first", async () => {
  await go("/new?from=X");
  type("hours of work");
  await pass();
  expect(request()?.name).toBe("hours of work");
  await go("/");
  await go("/new?preset=quickstart");
  expect(drawn.at.textContent).toContain("“hours of work” was put aside");
  click("Bring it back");
  await pass();
  expect(window.location.search).toBe("?from=X");
  expect(request()?.name).toBe("hours of work");
});

test("a search that is queued late takes nobody away from another page", async () => {
  await go("/new");
  click("Start the search");
  await pass();
  const sent = service.open.find(({ method }) => method === "POST")!;
  await go("/datasets");
  sent.answer({ id: "N" }, 201);
  await pass();
  expect(window.location.pathname).toBe("/datasets");
});

test("what was written while a request was sent is kept", async () => {
  await go("/new");
  click("Start the search");
  await pass();
  type("the next one");
  service.open.find(({ method }) => method === "POST")!.answer({ id: "N" }, 201);
  await pass();
  expect(window.location.pathname).toBe("/searches/N");
  await go("/new");
  expect(request()?.name).toBe("the next one");
});
