/** One text: what it is, its beginning on demand, use it, remove it. */

import { useState } from "react";

import { api, get, Problem as Failure, useQuery } from "../api/client";
import type { Dataset, Search } from "../api/types";
import { Link } from "../router";
import { Button, ButtonLink } from "../ui/Button";
import { bytes } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Time } from "../ui/Time";

export function TextRow({
  text,
  open,
  toggle,
  onRemoved,
}: {
  text: Dataset;
  open: boolean;
  toggle: () => void;
  onRemoved: () => void;
}) {
  const [removing, setRemoving] = useState(false);
  return (
    <li className="text">
      <div className="text-head">
        <button type="button" className="text-name" aria-expanded={open} onClick={toggle}>
          <span className="text-arrow" aria-hidden="true">
            {open ? "▾" : "▸"}
          </span>
          <strong>{text.name}</strong>
        </button>
        <span className="quiet text-facts">
          {text.built_in ? (
            <span>built in</span>
          ) : (
            <span>
              uploaded <Time at={text.created_at} />
            </span>
          )}
          {text.n_bytes !== null && (
            <span title={`${text.n_bytes.toLocaleString("en-US")} bytes`}>{bytes(text.n_bytes)}</span>
          )}
          {text.n_uses > 0 && <span>in use</span>}
        </span>
        {text.built_in && <p className="quieter text-description">{text.description}</p>}
        <span className="text-actions">
          <ButtonLink href={`/new?dataset=${encodeURIComponent(text.name)}`}>Use it in a new search</ButtonLink>
          {!text.built_in && (
            <Button kind="quiet" onClick={() => setRemoving(true)} aria-label={`remove ${text.name}`}>
              Remove
            </Button>
          )}
        </span>
      </div>
      {removing && <Removal text={text} onKept={() => setRemoving(false)} onRemoved={onRemoved} />}
      {open && <Detail text={text} />}
    </li>
  );
}

function Detail({ text }: { text: Dataset }) {
  const { data, problem } = useQuery(`dataset ${text.name} ${text.fingerprint}`, (signal) =>
    api.GET("/api/v1/datasets/{name}", { params: { path: { name: text.name } }, signal }),
  );
  return (
    <div className="text-detail">
      {problem && <Problem problem={problem} />}
      {data?.excerpt && (
        <pre className="text-excerpt" tabIndex={0} aria-label={`beginning of ${text.name}`}>
          {data.excerpt}
          {(text.n_bytes ?? 0) > data.excerpt.length && <span className="quieter"> …</span>}
        </pre>
      )}
      <p className="quieter">
        {text.fingerprint ? (
          <>
            sha256 <code className="text-fingerprint">{text.fingerprint}</code>
          </>
        ) : (
          "size and fingerprint are known after the first search that reads it"
        )}
      </p>
    </div>
  );
}

function Removal({ text, onKept, onRemoved }: { text: Dataset; onKept: () => void; onRemoved: () => void }) {
  const [problem, setProblem] = useState<Failure | null>(null);
  const [users, setUsers] = useState<Search[]>([]);
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await get(api.DELETE("/api/v1/datasets/{name}", { params: { path: { name: text.name } } }));
      onRemoved();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.status === 404) return onRemoved(); // somebody else was faster
      setProblem(error);
      if (error.code === "dataset-in-use") setUsers(await usersOf(text.name));
      setBusy(false);
    }
  };
  return (
    <div className="text-removal" role="group" aria-label={`remove ${text.name}?`}>
      {problem === null ? (
        <p>
          Remove <strong>{text.name}</strong>? Searches that have finished keep what they found.
        </p>
      ) : problem.code === "dataset-in-use" ? (
        <div className="problem" role="alert">
          <p>
            <strong>{text.name} stays:</strong> searches that have not finished need it. Cancel them, or wait for their
            end.
          </p>
          <ul>
            {users.map((search) => (
              <li key={search.id}>
                <Link href={`/searches/${search.id}`}>{search.name}</Link> <span className="quiet">{search.state}</span>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        <Problem problem={problem} title="Not removed" />
      )}
      <div className="row">
        {problem === null && (
          <Button kind="danger" disabled={busy} onClick={() => void remove()}>
            Remove
          </Button>
        )}
        <Button autoFocus onClick={onKept}>
          {problem === null ? "Keep" : "Close"}
        </Button>
      </div>
    </div>
  );
}

/** The searches that need a text. */
async function usersOf(name: string): Promise<Search[]> {
  try {
    const { in_use_by } = await get(api.GET("/api/v1/datasets/{name}", { params: { path: { name } } }));
    return await Promise.all(
      in_use_by.map((search_id) => get(api.GET("/api/v1/searches/{search_id}", { params: { path: { search_id } } }))),
    );
  } catch (error) {
    if (error instanceof Failure) return []; // the refusal itself is shown; one of them has just ended
    throw error;
  }
}
