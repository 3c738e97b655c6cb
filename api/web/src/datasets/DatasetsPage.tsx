/** What searches may learn from: uploads, the texts that every installation has, and tasks that are drawn on the fly. */

import { api, useQuery } from "../api/client";
import type { Dataset, SyntheticTask } from "../api/types";
import { useCatalog } from "../blocks";
import { Link } from "../router";
import { ButtonLink } from "../ui/Button";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { bytes, count, fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Table } from "../ui/Table";
import { Time } from "../ui/Time";
import { KIND_WORDS, rowsWords } from "./card";
import "./datasets.css";
import { UploadCard } from "./UploadCard";

export function DatasetsPage() {
  const catalog = useCatalog();
  const { data, problem, reload } = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }), {
    every: 15_000,
  });
  const datasets = data?.items ?? [];
  const kept = datasets.filter((each) => each.kind !== "synthetic");
  const own = kept.filter((each) => !each.built_in);
  return (
    <div className="stack">
      <h1>Datasets</h1>
      <p className="quiet">
        What searches learn from, cut into parts for weights, alpha, validation and test that never overlap.
      </p>
      <UploadCard
        datasets={datasets}
        limits={catalog.data && { least: catalog.data.min_dataset_bytes, most: catalog.data.max_dataset_bytes }}
        onAdded={reload}
      />
      {problem && <Problem problem={problem} title="The datasets cannot be listed" />}
      {data && (
        <>
          <Card title="Yours" className="datasets kept" aria-label="your datasets">
            {own.length > 0 ? <Rows datasets={own} label="your datasets" /> : <NothingYet />}
          </Card>
          <Card title="Built in" className="datasets kept" aria-label="built-in texts">
            <Rows datasets={kept.filter((each) => each.built_in)} label="built-in texts" />
          </Card>
        </>
      )}
      {catalog.data && catalog.data.tasks.length > 0 && <Tasks tasks={catalog.data.tasks} />}
    </div>
  );
}

function NothingYet() {
  return (
    <div className="nothing-yet">
      <p className="quiet">Nothing of yours yet: choose a file above, or send one from a terminal.</p>
      <Command>blockwright datasets add reviews reviews.jsonl</Command>
    </div>
  );
}

export const viewOf = (name: string) => `/datasets/${encodeURIComponent(name)}`;

function Rows({ datasets, label }: { datasets: Dataset[]; label: string }) {
  return (
    <Table
      label={label}
      head={
        <>
          <th>name</th>
          <th className="column-kind">kind</th>
          <th className="figure column-size">size</th>
          <th className="figure column-rows">rows</th>
          <th className="figure column-labels">labels</th>
          <th className="column-users">in use</th>
          <th className="column-added">added</th>
          <th className="column-use" />
        </>
      }
    >
      {datasets.map((each) => (
        <Row key={each.name} dataset={each} />
      ))}
    </Table>
  );
}

function Row({ dataset: { name, kind, description, built_in, n_bytes, card, n_uses, created_at } }: { dataset: Dataset }) {
  const labels = card?.labels ? Object.keys(card.labels).length : null;
  return (
    <tr>
      <td className="dataset-name">
        <Link href={viewOf(name)}>{name}</Link>
        {built_in && <p className="quieter">{description}</p>}
      </td>
      <td>{KIND_WORDS[kind]}</td>
      <td className="figure column-size" title={n_bytes === null ? "known after its first use" : `${count(n_bytes)} bytes`}>
        {bytes(n_bytes)}
      </td>
      <td className="figure column-rows">{card ? rowsWords(card) : "–"}</td>
      <td className="figure column-labels">{labels === null ? "–" : count(labels)}</td>
      <td className="column-users">{n_uses > 0 ? `by ${count(n_uses)} ${n_uses === 1 ? "search" : "searches"}` : "–"}</td>
      <td className="column-added">{built_in ? "–" : <Time at={created_at} />}</td>
      <td className="column-use">
        <Use name={name} kind={kind} />
      </td>
    </tr>
  );
}

/** Begins a search with it; of a tokenizer, with whatever text the search has. */
export function Use({ name, kind, primary = false }: { name: string; kind: Dataset["kind"]; primary?: boolean }) {
  const as = kind === "tokenizer" ? "tokenizer" : "dataset";
  return (
    <ButtonLink
      kind={primary ? "primary" : "plain"}
      href={`/new?${as}=${encodeURIComponent(name)}`}
      aria-label={`use ${name} in a new search`}
    >
      {primary ? "Use it in a new search" : "Use"}
    </ButtonLink>
  );
}

function Tasks({ tasks }: { tasks: SyntheticTask[] }) {
  return (
    <Card
      title="Synthetic tasks"
      className="datasets"
      aria-label="synthetic tasks"
      aside={<span className="quieter">drawn afresh from a seed, each with a known best score</span>}
    >
      <Table
        label="synthetic tasks"
        head={
          <>
            <th>name</th>
            <th className="column-objective">objective</th>
            <th className="figure">best accuracy</th>
            <th className="dataset-why">because</th>
            <th className="column-use" />
          </>
        }
      >
        {tasks.map(({ name, description, objective, best_accuracy, best_why }) => (
          <tr key={name}>
            <td className="dataset-name">
              <Link href={viewOf(name)}>{name}</Link>
              <p className="quieter">{description}</p>
            </td>
            <td className="column-objective">{OBJECTIVE_WORDS[objective] ?? objective.replaceAll("_", " ")}</td>
            <td className="figure">{fixed(best_accuracy, 3)}</td>
            <td className="quiet dataset-why">{best_why}</td>
            <td className="column-use">
              <Use name={name} kind="synthetic" />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

export const OBJECTIVE_WORDS: Record<string, string> = {
  sequence_classification: "a label for each sequence",
  token_classification: "a label for each token",
};
