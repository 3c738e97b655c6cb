/** Calls of the service: typed by its OpenAPI document, failures as `Problem`s, and a hook that keeps an answer fresh. */

import createClient from "openapi-fetch";
import { useCallback, useEffect, useRef, useState } from "react";

import { connection, session } from "./connection";
import type { paths } from "./schema";
import type { FieldError, ProblemBody } from "./types";

/** `api.GET("/api/v1/searches/{search_id}", { params: { path: { search_id } } })`: data, error and response. */
export const api = createClient<paths>({
  baseUrl: typeof window === "undefined" ? "http://127.0.0.1" : window.location.origin,
});

/** A refusal of the service (RFC 9457), or status 0 when it does not answer. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly errors: FieldError[];

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail ?? (status === 0 ? "the service does not answer" : `the service answered ${status}`));
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? (status === 0 ? "unreachable" : "http-error");
    this.requestId = body.request_id ?? null;
    this.errors = body.errors ?? [];
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Await a call; throws a `Problem` for anything but success. Knows when to ask for the token, and when nobody answers. */
export async function sent<T>(call: Promise<Answer<T>>): Promise<{ data: T; response: Response }> {
  const turn = session.turn();
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    connection.lost();
    throw new Problem(0, {});
  }
  connection.found();
  if (answer.response.ok) return { data: answer.data as T, response: answer.response };
  if (answer.response.status === 401) session.ask(turn);
  const body = typeof answer.error === "object" && answer.error !== null ? answer.error : {};
  throw new Problem(answer.response.status, body as Partial<ProblemBody>);
}

/** As `sent`, the data alone: `const search = await get(api.GET(...))`. */
export async function get<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await sent(call)).data;
}

const AGAIN_MS = 2000;
/** No answer, or one of whoever stands before a service that is away or busy. */
const AWAY = new Set([0, 502, 503, 504]);

export interface Query<T> {
  data: T | undefined;
  /** Of the newest attempt; the data of an earlier one stay. */
  problem: Problem | null;
  loading: boolean;
  reload: () => void;
}

/**
 * An answer of the service, asked for again when `key` changes, on `reload()`, after signing in, and every `every` ms.
 *
 * The service's ETags make a repeated question cheap (the browser sends them), and an unchanged answer draws nothing.
 *
 * @param key names the question; null asks nothing.
 * @param load such as `(signal) => api.GET("/api/v1/datasets", { signal })`.
 * @param every milliseconds between questions while the tab is visible; a function decides from the data.
 */
export function useQuery<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<Answer<T>>,
  { every = null }: { every?: number | null | ((data: T | undefined) => number | null) } = {},
): Query<T> {
  const [state, setState] = useState<{ key: string | null; data: T | undefined; problem: Problem | null }>({
    key: null,
    data: undefined,
    problem: null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef({ load, every });
  latest.current = { load, every };
  const reload = useCallback(() => setTurn((before) => before + 1), []);

  useEffect(() => session.onSignIn(reload), [reload]);
  useEffect(() => {
    if (key === null) return;
    const aborter = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let data: T | undefined;
    let etag: string | null = null;
    let failed: number | null = null; // status of the newest answer, if it was a failure
    let asked = 0;
    let answered = 0;

    const ask = async () => {
      clearTimeout(timer);
      const number = ++asked;
      const isOvertaken = () => aborter.signal.aborted || number < answered;
      try {
        const answer = await sent(latest.current.load(aborter.signal));
        if (isOvertaken()) return;
        answered = number;
        failed = null;
        const found = answer.response.headers.get("etag");
        const changed = found === null || found !== etag || data === undefined;
        etag = found;
        if (changed) data = answer.data;
        setState((before) =>
          !changed && before.key === key && before.problem === null ? before : { key, data, problem: null },
        );
      } catch (error) {
        if (isOvertaken()) return;
        if (!(error instanceof Problem)) throw error;
        answered = number;
        const problem = error;
        failed = problem.status;
        setState((before) => ({ key, data: before.key === key ? before.data : undefined, problem }));
      }
      plan();
    };
    const isAway = () => failed !== null && AWAY.has(failed);
    const plan = () => {
      clearTimeout(timer); // two questions may have crossed
      if (aborter.signal.aborted || session.isLocked()) return; // signing in asks again
      const wish = latest.current.every;
      // Away or busy: what was not answered is asked again, so that the page heals by itself.
      const wait = isAway() ? AGAIN_MS : typeof wish === "function" ? wish(data) : wish;
      if (wait !== null && document.visibilityState === "visible") timer = setTimeout(ask, wait);
    };
    const look = () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible" && (latest.current.every !== null || isAway())) void ask();
    };
    void ask();
    document.addEventListener("visibilitychange", look);
    return () => {
      aborter.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [key, turn]);

  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    problem: current ? state.problem : null,
    loading: key !== null && (!current || (state.data === undefined && state.problem === null)),
    reload,
  };
}
