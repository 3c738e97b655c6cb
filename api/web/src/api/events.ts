/** The event stream of a search: every event once and in order, across reconnections and hidden tabs. */

import { useEffect, useRef, useState } from "react";

import { connection, session } from "./connection";

export interface SearchEvent {
  number: number;
  type: string;
  /** RFC 3339. */
  at: string;
  /** Of `reports`: trial, first_step, last_step, reports. */
  data: Record<string, unknown>;
}

/** The closed set of types: an EventSource hears only those it was told of. */
export const EVENT_TYPES = [
  "queued",
  "started",
  "stage",
  "latency_table",
  "estimate",
  "power",
  "trial",
  "reports",
  "checkpoint",
  "architecture",
  "rule",
  "artifact",
  "result",
  "warning",
  "cancelling",
  "cancelled",
  "requeued",
  "succeeded",
  "failed",
] as const;
const ENDS = new Set(["succeeded", "failed", "cancelled"]);
const AGAIN_MS = 2000;

export type StreamState = "waiting" | "open" | "paused" | "ended";

/**
 * Follow a search from the event after `after`.
 *
 * A browser allows six connections to a host, so a hidden tab closes its stream and goes on where it was when it is shown
 * again.
 *
 * @param searchId null follows nothing.
 * @param onEvent may change from call to call; always the newest is told.
 */
export function useEvents(searchId: string | null, onEvent: (event: SearchEvent) => void, after = 0): StreamState {
  const [state, setState] = useState<StreamState>("waiting");
  const tell = useRef(onEvent);
  tell.current = onEvent;

  useEffect(() => {
    if (searchId === null) return;
    let seen = after;
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let closed = false;

    const receive = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as SearchEvent;
      if (event.number <= seen) return;
      seen = event.number;
      tell.current(event);
    };
    const stop = (now: StreamState) => {
      clearTimeout(timer);
      source?.close();
      source = null;
      setState(now);
    };
    // An EventSource tells no status: ask for the search itself why the stream was refused.
    const why = async () => {
      const turn = session.turn();
      try {
        const answer = await fetch(`/api/v1/searches/${searchId}`, { cache: "no-store" });
        if (closed) return;
        connection.found();
        if (answer.status === 401) {
          session.ask(turn);
          return stop("paused");
        }
        if (answer.status === 404) return stop("ended");
        if (answer.ok) {
          const search = (await answer.json()) as { state: string; last_event: number };
          if (closed) return;
          if (ENDS.has(search.state) && search.last_event <= seen) return stop("ended");
        }
      } catch {
        if (closed) return;
        connection.lost();
      }
      clearTimeout(timer);
      timer = setTimeout(open, AGAIN_MS);
    };
    const open = () => {
      if (closed || source !== null || document.visibilityState !== "visible") return;
      setState("waiting");
      // One connection, opened by us each time: the browser's own reconnection would go on from the same URL.
      const opened = new EventSource(`/api/v1/searches/${searchId}/events?after=${seen}`);
      source = opened;
      opened.onopen = () => {
        connection.found();
        setState("open");
      };
      opened.onerror = () => {
        if (source !== opened) return;
        opened.close();
        source = null;
        setState("waiting");
        void why();
      };
      for (const type of EVENT_TYPES) opened.addEventListener(type, receive as EventListener);
    };
    const look = () => (document.visibilityState === "visible" ? open() : stop("paused"));

    open();
    document.addEventListener("visibilitychange", look);
    const unlisten = session.onSignIn(open);
    return () => {
      closed = true;
      clearTimeout(timer);
      source?.close();
      document.removeEventListener("visibilitychange", look);
      unlisten();
    };
  }, [searchId, after]);

  return state;
}
