/** The view of a search as the URL has it. The URL follows after a pause: a played slider would flood the history. */

import { useCallback, useEffect, useRef, useState } from "react";

import { navigate, useLocation, withQuery } from "../router";
import { queryOf, type View, viewOf } from "./model/view";

const PAUSE_MS = 200;

export function useView(slots: number): [View, (change: Partial<View>) => void] {
  const { query } = useLocation();
  const written = useRef(query.toString());
  const [view, setView] = useState(() => viewOf(query, slots));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const text = query.toString();

  // The back button, or a link to another view of the same search.
  useEffect(() => {
    if (text === written.current) return;
    written.current = text;
    setView(viewOf(new URLSearchParams(text), slots));
  }, [text, slots]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const latest = useRef(view);
  latest.current = view;
  const change = useCallback((part: Partial<View>) => {
    latest.current = { ...latest.current, ...part };
    setView(latest.current);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const url = withQuery(queryOf(latest.current));
      written.current = new URL(url, window.location.origin).searchParams.toString();
      navigate(url, { replace: true });
    }, PAUSE_MS);
  }, []);
  return [view, change];
}
