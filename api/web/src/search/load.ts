/** Reads a search by REST: thinned by `stride`, so that a hundred thousand reports never arrive at once. */

import { api, get } from "../api/client";
import type { Probabilities, Report, Search, SearchRequest } from "../api/types";
import type { TableBody } from "./model/cost";
import { framesToKeep, strideFor } from "./model/frames";
import { type Live, type Part, slotsOf } from "./model/live";

const PAGE = 1000;
const POINTS = 12_000; // of all curves together
const POINTS_OF_TRIAL = 400;

const at = (id: string) => ({ path: { search_id: id } });

export const loadSearch = (id: string, signal?: AbortSignal): Promise<Search> =>
  get(api.GET("/api/v1/searches/{search_id}", { params: at(id), signal }));

/** Ask again for one part of a search. */
export async function loadPart(live: Live, part: Part, signal: AbortSignal): Promise<TableBody | null> {
  const { id } = live.search;
  const params = at(id);
  switch (part) {
    case "search":
      live.setSearch(await loadSearch(id, signal));
      return null;
    case "trials":
      live.setTrials((await get(api.GET("/api/v1/searches/{search_id}/trials", { params, signal }))).items);
      return null;
    case "architectures": {
      const page = await get(api.GET("/api/v1/searches/{search_id}/architectures", { params, signal }));
      live.set("architectures", page.items);
      return null;
    }
    case "rules":
      live.set("rules", (await get(api.GET("/api/v1/searches/{search_id}/rules", { params, signal }))).items);
      return null;
    case "artifacts":
      live.set("artifacts", (await get(api.GET("/api/v1/searches/{search_id}/artifacts", { params, signal }))).items);
      return null;
    case "warnings": {
      const page = await get(api.GET("/api/v1/searches/{search_id}/warnings", { params, signal }));
      live.setWarnings(page.items);
      return null;
    }
    case "table": {
      const table = live.search.latency_table;
      if (table === null) return null;
      return (await get(
        api.GET("/api/v1/latency-tables/{table_id}", { params: { path: { table_id: table } }, signal }),
      )) as TableBody;
    }
  }
}

/** The curves of all trials, page by page. */
export async function loadReports(live: Live, onPage: (rows: Report[]) => void, signal: AbortSignal): Promise<void> {
  const { method, retrain } = live.search.request as unknown as SearchRequest;
  const points = Math.max(12, Math.min(POINTS_OF_TRIAL, POINTS / Math.max(1, live.trials.length)));
  const stride = strideFor(Math.max(method.n_steps, retrain.n_steps), method.report_every, points);
  let cursor: string | null = null;
  do {
    const query: { stride: number; limit: number; cursor?: string } = { stride, limit: PAGE };
    if (cursor !== null) query.cursor = cursor;
    const params = { ...at(live.search.id), query };
    const page: { items: Report[]; next?: string | null } = await get(
      api.GET("/api/v1/searches/{search_id}/reports", { params, signal }),
    );
    onPage(page.items);
    cursor = page.next ?? null;
  } while (cursor !== null && !signal.aborted);
}

/** softmax(alpha) of one trial over its steps, each cell with its z: a probability is never shown without it. */
export async function loadFrames(live: Live, trial: string, signal: AbortSignal): Promise<Probabilities[]> {
  const nSteps = live.trials.find((each) => each.id === trial)?.n_steps ?? 1;
  const { method } = live.search.request as unknown as SearchRequest;
  const wanted = framesToKeep(slotsOf(live.search), live.search.labels.length);
  const query = { trial, stride: strideFor(nSteps, method.report_every, wanted), limit: PAGE, evidence: true };
  const params = { ...at(live.search.id), query };
  return (await get(api.GET("/api/v1/searches/{search_id}/probabilities", { params, signal }))).items;
}
