/** The frame of every page, and which page an address means. */

import type { ReactNode } from "react";

import { useLocked } from "./api/connection";
import { DatasetPage } from "./datasets/DatasetPage";
import { DatasetsPage } from "./datasets/DatasetsPage";
import { ListPage } from "./list/ListPage";
import { NewPage } from "./new/NewPage";
import { Link, useLocation } from "./router";
import { SearchPage } from "./search/SearchPage";
import { Empty } from "./ui/Empty";
import { SignIn } from "./ui/SignIn";
import { TopBar } from "./ui/TopBar";
import { useTitle } from "./ui/useTitle";

export function pageOf(path: string): ReactNode {
  if (path === "/") return <ListPage />;
  if (path === "/new") return <NewPage />;
  if (path === "/datasets") return <DatasetsPage />;
  const dataset = /^\/datasets\/([^/]+)$/.exec(path);
  if (dataset?.[1]) return <DatasetPage key={dataset[1]} name={decodeURIComponent(dataset[1])} />;
  const search = /^\/searches\/([^/]+)$/.exec(path);
  if (search?.[1]) return <SearchPage key={search[1]} id={decodeURIComponent(search[1])} />;
  return (
    <Empty title="There is no such page">
      <Link href="/">All searches</Link>
    </Empty>
  );
}

/** The pages of a search and of a dataset set their own. */
const TITLES: Record<string, string> = { "/": "Searches", "/new": "New search", "/datasets": "Datasets" };

export function App() {
  const { path } = useLocation();
  const locked = useLocked();
  useTitle(TITLES[path] ?? null);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <TopBar path={path} />
      {locked && <SignIn />}
      {/* Hidden, not removed: what was typed into a form is still there after signing in. */}
      <main id="main" tabIndex={-1} hidden={locked}>
        {pageOf(path)}
      </main>
    </>
  );
}
