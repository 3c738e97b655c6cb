/** The draft of the page: begun from its address, kept over reloads, and put aside rather than lost. */

import { useEffect, useMemo, useReducer, useRef, useState } from "react";

import type { Catalog, Dataset, Search } from "../api/types";
import { navigate, useLocation } from "../router";
import { changed, type Change, type Draft, kept, newKey, store, stored, type Stored } from "./draft";
import { withDataset, withTokenizer, type Part } from "./data";
import type { Json } from "./json";
import { set } from "./pointer";
import { rulesOf } from "./schema";

export const FIRST_PRESET = "quickstart";

/** The part of the address that says what the request begins as. */
export function sourceOf(query: URLSearchParams): string {
  const named = ["from", "preset", "dataset", "tokenizer"].filter((name) => query.get(name));
  return named.map((name) => `${name}=${encodeURIComponent(query.get(name) ?? "")}`).join("&");
}

export function begin(
  catalog: Pick<Catalog, "presets" | "tasks">,
  datasets: readonly Dataset[],
  from: Pick<Search, "request"> | null,
  source: string,
): Json {
  const query = new URLSearchParams(source);
  const preset = query.get("preset") ?? FIRST_PRESET;
  let request = (from?.request ?? catalog.presets[preset] ?? Object.values(catalog.presets)[0] ?? {}) as Json;
  const put = (parts: Part[]) => {
    request = parts.reduce((now, [pointer, part]) => set(now, pointer, part), request);
  };
  // What the earlier run filled in: found again for the changed request, or measured anew where it does not fit.
  if (from) put(FILLED_IN);
  const dataset = query.get("dataset");
  if (dataset) put([...withDataset(catalog, datasets, request, dataset), ["/name", dataset]]);
  const tokenizer = query.get("tokenizer");
  if (tokenizer) put(withTokenizer("file", [tokenizer]));
  return request;
}

const FILLED_IN: Part[] = [
  ["/latency_table", null],
  ["/task/dataset_fingerprint", null],
  ["/task/sizes", null],
  ["/task/tokenizer/fingerprint", null],
  ["/space/backbone/n_classes", 0],
];

export interface Drafting {
  draft: Draft;
  tell: (change: Change) => void;
  /** Begin anew from this source. */
  start: (source: string) => void;
  /** What another beginning has put aside. */
  aside: Stored | null;
  bringBack: () => void;
  dismiss: () => void;
}

export function useDraft(catalog: Catalog, datasets: readonly Dataset[], from: Search | null): Drafting {
  const source = sourceOf(useLocation().query);
  const rules = useMemo(() => rulesOf(catalog), [catalog]);
  const [draft, tell] = useReducer(
    (before: Draft, change: Change) => changed(rules, before, change),
    null,
    (): Draft => {
      const before = stored();
      if (before && (source === "" || before.source === source)) {
        return changed(rules, null, { type: "restored", draft: before });
      }
      return changed(rules, null, { type: "loaded", source, request: begin(catalog, datasets, from, source) });
    },
  );
  const [aside, setAside] = useState<Stored | null>(null);
  const shown = useRef<string | null>(null);

  const load = (wanted: string) => {
    shown.current = wanted;
    if (draft.text !== draft.loaded) setAside(kept(draft));
    const request = begin(catalog, datasets, wanted.startsWith("from=") ? from : null, wanted);
    tell({ type: "loaded", source: wanted, request });
  };
  useEffect(() => {
    if (shown.current === source) return;
    if (shown.current === null) {
      const before = stored(); // still of the page before: this draft is stored below
      if (before && before.source !== draft.source && before.text !== before.loaded) setAside(before);
      shown.current = source;
    } else if (source !== "" && source !== draft.source) load(source);
    else shown.current = source;
  });
  useEffect(() => store(kept(draft)), [draft]);

  const start = (wanted: string) => {
    load(wanted);
    navigate(`/new?${wanted}`, { replace: true });
  };
  const bringBack = () => {
    if (!aside) return;
    shown.current = aside.source;
    const back = { ...aside, key: newKey() };
    store(back); // the page may begin anew with its address: a search that it was begun from is loaded again
    tell({ type: "restored", draft: back });
    navigate(aside.source ? `/new?${aside.source}` : "/new", { replace: true });
    setAside(null);
  };
  return { draft, tell, start, aside, bringBack, dismiss: () => setAside(null) };
}
