/** All searches, newest first, live; the filters and the page are in the URL. */

import { api, useQuery } from "../api/client";
import type { Search } from "../api/types";
import { useCatalog } from "../blocks";
import { Link, navigate, useLocation, withQuery } from "../router";
import { Button, ButtonLink } from "../ui/Button";
import { Command } from "../ui/Command";
import { Empty } from "../ui/Empty";
import { Legend } from "../ui/Legend";
import { Problem } from "../ui/Problem";
import { SearchRow } from "./SearchRow";
import "./list.css";

const STATES = ["running", "queued", "succeeded", "failed", "cancelled"] as const;
type State = (typeof STATES)[number];
const PAGE = 25;
const LIVE_MS = 2000;
const IDLE_MS = 10_000;

const isState = (value: string | null): value is State => STATES.includes(value as State);
const isOpen = (search: Search) => search.state === "running" || search.state === "queued";

export function ListPage() {
  const { query } = useLocation();
  const given = query.get("state");
  const state = isState(given) ? given : null;
  const dataset = query.get("dataset");
  const cursor = query.get("cursor");
  const catalog = useCatalog();
  const datasets = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }));
  const list = useQuery(
    `searches ${state} ${dataset} ${cursor}`,
    (signal) =>
      api.GET("/api/v1/searches", {
        signal,
        params: {
          query: {
            limit: PAGE,
            ...(state && { state }),
            ...(dataset && { dataset }),
            ...(cursor && { cursor }),
          },
        },
      }),
    { every: (data) => (data?.items.some(isOpen) ? LIVE_MS : IDLE_MS) },
  );

  const kept = datasets.data?.items.filter((each) => each.kind !== "tokenizer") ?? [];
  const tasks = catalog.data?.tasks ?? [];
  const names = new Set([...[...kept, ...tasks].map((each) => each.name), ...(dataset ? [dataset] : [])]);
  const filtered = state !== null || dataset !== null;
  const items = list.data?.items ?? [];
  const blank = list.data !== undefined && items.length === 0 && !filtered && cursor === null;
  return (
    <div className="stack">
      <div className="spread">
        <h1>Searches</h1>
        <ButtonLink href="/new" kind="primary">
          New search
        </ButtonLink>
      </div>
      {!blank && (
        <div className="list-filters">
          <nav className="choices" aria-label="state">
            {[null, ...STATES].map((each) => (
              <Link
                key={each ?? "all"}
                href={withQuery({ state: each, cursor: null })}
                aria-current={each === state ? "true" : undefined}
              >
                {each ?? "all"}
              </Link>
            ))}
          </nav>
          <label className="row quiet">
            Dataset
            <select
              className="input"
              value={dataset ?? ""}
              onChange={(event) => navigate(withQuery({ dataset: event.target.value, cursor: null }))}
            >
              <option value="">any</option>
              {[...names].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <Legend catalog={catalog.data} />
        </div>
      )}
      {list.problem && list.problem.status !== 401 && list.problem.status !== 0 && (
        <Problem problem={list.problem} title="The list cannot be shown">
          <div className="row">
            <Button onClick={list.reload}>Try again</Button>
            {(filtered || cursor) && <ButtonLink href="/">All searches</ButtonLink>}
          </div>
        </Problem>
      )}
      {list.data && items.length === 0 && <Nothing filtered={filtered} later={cursor !== null} />}
      {(items.length > 0 || list.loading) && (
        <div className="list">
          <div className="list-head" aria-hidden="true">
            <span>search</span>
            <span>state</span>
            <span>leading blocks</span>
            <span>progress</span>
            <span>best figure</span>
            <span>submitted</span>
          </div>
          <ul className="list-items" aria-busy={list.loading}>
            {items.map((search) => (
              <li key={search.id}>
                <SearchRow search={search} catalog={catalog.data} />
              </li>
            ))}
            {list.loading && <li className="list-row" />}
          </ul>
        </div>
      )}
      {(cursor || list.data?.next) && (
        <nav className="row" aria-label="parts of the list">
          {cursor && <ButtonLink href={withQuery({ cursor: null })}>Newest</ButtonLink>}
          {list.data?.next && <ButtonLink href={withQuery({ cursor: list.data.next })}>Older</ButtonLink>}
        </nav>
      )}
    </div>
  );
}

function Nothing({ filtered, later }: { filtered: boolean; later: boolean }) {
  if (filtered || later) {
    return (
      <Empty title={later ? "There are no older searches" : "No search is like that"}>
        <ButtonLink href="/">All searches</ButtonLink>
      </Empty>
    );
  }
  return (
    <Empty title="No searches yet">
      <p className="quiet">
        A search finds out which block each layer of a Transformer needs on your data: some minutes on two cores, and a
        model to download at its end.
      </p>
      <ButtonLink href="/new?preset=quickstart" kind="primary">
        Start with the quickstart
      </ButtonLink>
      <p className="quieter">or from a terminal</p>
      <Command>blockwright submit examples/quickstart.json</Command>
    </Empty>
  );
}
