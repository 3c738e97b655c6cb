/** One dataset: what it is, how it is cut, what stands in it, who needs it. */

import { useState, type ReactNode } from "react";

import { api, useQuery } from "../api/client";
import type { DatasetDetail } from "../api/types";
import { useCatalog } from "../blocks";
import { Link, navigate } from "../router";
import { Button, ButtonLink } from "../ui/Button";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { Empty } from "../ui/Empty";
import { bytes, count, fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Time } from "../ui/Time";
import { useTitle } from "../ui/useTitle";
import { Bars } from "./Bars";
import { KIND_WORDS, labelBars, lengthBars, rowsWords } from "./card";
import "./datasets.css";
import { Use } from "./DatasetsPage";
import { Encodings } from "./Encodings";
import { Parts } from "./Parts";
import { Removal } from "./Removal";
import { Samples } from "./Samples";
import { TaskView } from "./TaskView";
import { Users } from "./Users";

export function DatasetPage({ name }: { name: string }) {
  useTitle(name);
  const catalog = useCatalog();
  const task = catalog.data?.tasks.find((each) => each.name === name);
  const { data, problem } = useQuery(
    catalog.loading || task ? null : `dataset ${name}`,
    (signal) => api.GET("/api/v1/datasets/{name}", { params: { path: { name } }, signal }),
    { every: 15_000 },
  );
  if (task) return <TaskView task={task} />;
  if (problem?.status === 404) {
    return (
      <Empty title={`There is no dataset ${name}`}>
        <p className="quiet">It may have been removed. To send it again from a terminal:</p>
        <Command>{`blockwright datasets add ${name} FILE`}</Command>
        <ButtonLink href="/datasets">All datasets</ButtonLink>
      </Empty>
    );
  }
  return (
    <div className="stack">
      {problem && <Problem problem={problem} title="The dataset cannot be shown" />}
      {data && <Detail dataset={data} />}
    </div>
  );
}

/** Where we are, what it is called, and what can be done with it. */
export function DatasetHead({ name, kind, children }: { name: string; kind: ReactNode; children?: ReactNode }) {
  return (
    <header className="dataset-head">
      <p className="quieter">
        <Link href="/datasets">Datasets</Link> / {kind}
      </p>
      <div className="spread">
        <h1>{name}</h1>
        <span className="row">{children}</span>
      </div>
    </header>
  );
}

function Detail({ dataset }: { dataset: DatasetDetail }) {
  const { name, kind, card, built_in, excerpt } = dataset;
  const [removing, setRemoving] = useState(false);
  return (
    <>
      <DatasetHead name={name} kind={KIND_WORDS[kind]}>
        <Use name={name} kind={kind} primary />
        {!built_in && (
          <Button kind="quiet" onClick={() => setRemoving(true)} aria-label={`remove ${name}`}>
            Remove
          </Button>
        )}
      </DatasetHead>
      {removing && (
        <Removal
          name={name}
          onKept={() => setRemoving(false)}
          onRemoved={() => navigate("/datasets", { replace: true })}
        />
      )}
      <Facts dataset={dataset} />
      {card ? <Content dataset={dataset} card={card} /> : <Unread builtIn={built_in} />}
      {excerpt && (
        <Card title="Beginning">
          <pre className="excerpt" dir="auto" tabIndex={0} aria-label={`beginning of ${name}`}>
            {excerpt}
            {(dataset.n_bytes ?? 0) > excerpt.length && <span className="quieter"> …</span>}
          </pre>
        </Card>
      )}
      {kind !== "tokenizer" && <Encodings dataset={dataset} />}
      <Card title="Identity">
        <dl className="facts-list">
          <dt>fingerprint</dt>
          <dd>
            {dataset.fingerprint ? (
              <code className="fingerprint">{dataset.fingerprint}</code>
            ) : (
              <span className="quiet">known after its first use</span>
            )}
          </dd>
          <dt>in use by</dt>
          <dd>
            {dataset.in_use_by.length > 0 ? (
              <Users ids={dataset.in_use_by} />
            ) : (
              <span className="quiet">no search that is queued or running</span>
            )}
          </dd>
        </dl>
      </Card>
    </>
  );
}

function Facts({ dataset: { description, built_in, n_bytes, created_at, card } }: { dataset: DatasetDetail }) {
  const settings = card?.settings;
  const facts: ReactNode[] = [
    ...(built_in ? [description] : []),
    ...(n_bytes === null ? [] : [<span title={`${count(n_bytes)} bytes`}>{bytes(n_bytes)}</span>]),
    ...(card ? [rowsWords(card)] : []),
    ...(card?.n_characters ? [`${count(card.n_characters)} distinct characters`] : []),
    ...(card?.labels ? [`${count(Object.keys(card.labels).length)} labels`] : []),
    ...(settings?.vocab_size ? [`ids below ${count(settings.vocab_size)}, ${settings.dtype ?? ""}`] : []),
    ...(settings?.eos_id == null ? [] : [`id ${settings.eos_id} ends a document`]),
    ...(settings?.corpus ? [`split as ${settings.corpus} is published`] : []),
    ...(built_in
      ? []
      : [
          <>
            uploaded <Time at={created_at} />
          </>,
        ]),
  ];
  return (
    <ul className="dataset-facts quiet">
      {facts.map((fact, at) => (
        <li key={at}>{fact}</li>
      ))}
    </ul>
  );
}

function Unread({ builtIn }: { builtIn: boolean }) {
  return (
    <Card title="Content">
      <p className="quiet">
        {builtIn
          ? "Read, counted and hashed by the first search that uses it:"
          : "Uploaded before content was looked at; the same file again fills this in:"}
      </p>
      <p className="unread-command">
        <Command>{builtIn ? "blockwright submit examples/quickstart.json" : "blockwright datasets add NAME FILE"}</Command>
      </p>
    </Card>
  );
}

const LENGTH_WORDS = { text: "lines", documents: "documents", tokens: "documents", tokenizer: "entries" } as const;

function Content({ dataset: { name }, card }: { dataset: DatasetDetail; card: NonNullable<DatasetDetail["card"]> }) {
  const lengths = lengthBars(card);
  return (
    <>
      <Parts card={card} />
      <div className="dataset-columns">
        {card.labels && (
          <Card
            title="Labels"
            aside={<span className="quieter">{card.label_kind === "token" ? "of words" : "of documents"}</span>}
          >
            <Bars bars={labelBars(card.labels)} label={`labels of ${name}`} head={["label", "how often"]} />
            {card.majority !== null && (
              <p className="dataset-note quiet">
                Always answering the most frequent one is right in <b>{fixed(100 * card.majority, 1)}%</b>: a model must
                do better.
              </p>
            )}
          </Card>
        )}
        {lengths.length > 0 && (
          <Card title="Lengths" aside={<span className="quieter">of {LENGTH_WORDS[card.settings.kind]}</span>}>
            <Bars bars={lengths} label={`lengths in ${name}`} head={["bytes", LENGTH_WORDS[card.settings.kind]]} />
          </Card>
        )}
      </div>
      {card.settings.kind !== "text" && <Samples card={card} />}
    </>
  );
}
