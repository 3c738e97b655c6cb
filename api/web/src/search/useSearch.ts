/** One search, loaded and then followed: answers and events meet in a `Live`, the page draws at most once a frame. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { Problem } from "../api/client";
import { session } from "../api/connection";
import { type SearchEvent, type StreamState, useEvents } from "../api/events";
import type { Search } from "../api/types";
import { loadFrames, loadPart, loadReports, loadSearch } from "./load";
import type { TableBody } from "./model/cost";
import { hasEnded, Live, type Part } from "./model/live";

const SOON_MS = 80; // several events of one change arrive together
const PROGRESS_MS = 1500;
const AGAIN_MS = 2000; // while the service is away

export interface Followed {
  live: Live | null;
  table: TableBody | null;
  /** Counts what has changed in `live`. */
  version: number;
  problem: Problem | null;
  /** Whether the first answers about trials, architectures and curves are in. */
  loaded: boolean;
  stream: StreamState;
  /** A changed search, as a cancel or a resume answers it. */
  put: (search: Search) => void;
  /** Load all frames of these trials, and keep those that come. */
  follow: (trials: readonly string[]) => void;
  reload: () => void;
}

export function useSearch(id: string): Followed {
  const [live, setLive] = useState<Live | null>(null);
  const [table, setTable] = useState<TableBody | null>(null);
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [loaded, setLoaded] = useState(false);
  const [turn, setTurn] = useState(0);
  const aborter = useRef(new AbortController());
  const newest = useRef<Live | null>(null); // events, answers and timers of one that was replaced change nothing
  const stale = useRef(new Set<Part>());
  const asked = useRef(new Set<Part>());
  const timer = useRef<{ at: number; id: ReturnType<typeof setTimeout> } | null>(null);
  const drawing = useRef(0);

  const reload = useCallback(() => setTurn((before) => before + 1), []);

  const draw = useCallback(() => {
    if (drawing.current) return;
    drawing.current = requestAnimationFrame(() => {
      drawing.current = 0;
      setVersion((before) => before + 1);
    });
  }, []);

  /** What failed because the service is away, or not itself, is tried again; any other refusal is shown. */
  const fail = useCallback((error: unknown, again: () => void) => {
    const { signal } = aborter.current;
    if (signal.aborted || (error instanceof DOMException && error.name === "AbortError")) return;
    const found = error instanceof Problem ? error : new Problem(0, { detail: String(error) });
    setProblem(found);
    if (found.status === 0 || found.status >= 500) setTimeout(() => signal.aborted || again(), AGAIN_MS);
  }, []);

  const { read, refresh } = useMemo(() => {
    /** Ask for a part; one answer of it at a time, so that none overtakes a newer one. */
    const read = async (current: Live, part: Part, signal: AbortSignal) => {
      stale.current.delete(part);
      asked.current.add(part);
      try {
        const found = await loadPart(current, part, signal);
        if (signal.aborted || current !== newest.current) return;
        if (found) setTable(found);
        draw();
      } finally {
        if (!signal.aborted && current === newest.current) {
          asked.current.delete(part);
          if (stale.current.has(part)) refresh(current, [part], SOON_MS);
          // What an event overtook is left out, so it is asked for again.
          else if (part === "search" && current.isBehind) refresh(current, [part], PROGRESS_MS);
        }
      }
    };
    const refresh = (current: Live, parts: readonly Part[], within: number) => {
      for (const part of parts) stale.current.add(part);
      if (stale.current.size === 0) return;
      const at = performance.now() + within;
      if (timer.current && timer.current.at <= at) return;
      if (timer.current) clearTimeout(timer.current.id);
      const { signal } = aborter.current;
      const ask = () => {
        timer.current = null;
        for (const part of stale.current) {
          if (asked.current.has(part)) continue; // its answer asks again
          read(current, part, signal).then(
            () => signal.aborted || setProblem(null),
            (error) => fail(error, () => refresh(current, [part], 0)),
          );
        }
      };
      timer.current = { at, id: setTimeout(ask, within) };
    };
    return { read, refresh };
  }, [draw, fail]);

  useEffect(() => session.onSignIn(reload), [reload]);

  useEffect(() => {
    const mine = new AbortController();
    const { signal } = mine;
    aborter.current = mine;
    const waiting = stale.current;
    const unanswered = asked.current;
    setLoaded(false);
    const forget = () => {
      if (timer.current) clearTimeout(timer.current.id);
      timer.current = null;
      waiting.clear();
      unanswered.clear();
    };
    const load = async () => {
      const current = new Live(await loadSearch(id, signal));
      forget();
      newest.current = current;
      setLive(current);
      setProblem(null);
      const parts: Part[] = ["trials", "architectures", "rules", "artifacts", "table", "warnings"];
      await Promise.all(parts.map((part) => read(current, part, signal)));
      await loadReports(
        current,
        (rows) => {
          current.addReports(rows);
          draw();
        },
        signal,
      );
      setLoaded(true);
      draw();
    };
    load().catch((error) => fail(error, reload));
    return () => {
      mine.abort();
      forget();
      cancelAnimationFrame(drawing.current);
      drawing.current = 0;
    };
  }, [id, turn, draw, fail, read, reload]);

  const tell = (event: SearchEvent) => {
    if (!live || live !== newest.current) return;
    const parts = live.tell(event);
    refresh(live, parts, event.type === "reports" ? PROGRESS_MS : SOON_MS);
    draw();
  };
  // An ended search whose last event is in sends nothing more; one that is resumed is followed from where it was left.
  const following = live !== null && !(hasEnded(live.search.state) && live.search.last_event <= live.seen);
  const stream = useEvents(following ? id : null, tell, useStart(live, following));

  // Nothing is sent of a search that has ended; somebody may have resumed or deleted it elsewhere.
  useEffect(() => {
    if (!live || following) return;
    const look = () => document.visibilityState === "visible" && refresh(live, ["search"], 0);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [live, following, refresh]);

  // The stream also ends when somebody has deleted the search.
  useEffect(() => {
    if (stream === "ended" && live && !hasEnded(live.search.state)) refresh(live, ["search"], 0);
  }, [stream, live, refresh]);

  const put = useCallback(
    (search: Search) => {
      newest.current?.setSearch(search);
      draw();
    },
    [draw],
  );

  const follow = useCallback(
    (trials: readonly string[]) => {
      if (!live) return;
      const { signal } = aborter.current;
      const load = (trial: string) =>
        loadFrames(live, trial, signal).then(
          (rows) => {
            if (signal.aborted) return;
            live.addProbabilities(rows);
            setProblem(null);
            draw();
          },
          (error) => fail(error, () => void load(trial)),
        );
      for (const trial of trials) {
        if (live.followed.has(trial)) continue;
        live.followed.add(trial);
        void load(trial);
      }
    },
    [live, draw, fail],
  );

  return { live, table, version, problem, loaded, stream, put, follow, reload };
}

/** The event to follow from: fixed while a stream is open, the newest known one when the next is opened. */
function useStart(live: Live | null, following: boolean): number {
  const start = useRef<{ live: Live | null; following: boolean; after: number }>({
    live: null,
    following: false,
    after: 0,
  });
  const before = start.current;
  if (before.live !== live || before.following !== following) {
    start.current = { live, following, after: live?.seen ?? 0 };
  }
  return start.current.after;
}
