/** Asks before an upload is removed, and says who needs it where it cannot be. */

import { useState } from "react";

import { api, get, Problem as Failure } from "../api/client";
import { here } from "../router";
import { Button } from "../ui/Button";
import { Problem } from "../ui/Problem";
import { Users } from "./Users";

export function Removal({ name, onKept, onRemoved }: { name: string; onKept: () => void; onRemoved: () => void }) {
  const [problem, setProblem] = useState<Failure | null>(null);
  const [users, setUsers] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    const stillHere = here();
    const leave = () => {
      if (stillHere()) onRemoved();
    };
    setBusy(true);
    setProblem(null);
    try {
      await get(api.DELETE("/api/v1/datasets/{name}", { params: { path: { name } } }));
      leave();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.status === 404) return leave(); // somebody else was faster
      setProblem(error);
      if (error.code === "dataset-in-use") setUsers(await usersOf(name));
      setBusy(false);
    }
  };
  return (
    <div className="removal" role="group" aria-label={`remove ${name}?`}>
      {problem === null ? (
        <p>
          Remove <strong>{name}</strong>? Searches that have finished keep what they found.
        </p>
      ) : problem.code === "dataset-in-use" ? (
        <div className="problem" role="alert">
          <p>
            <strong>{name} stays:</strong> searches that have not finished need it. Cancel them, or wait for their end.
          </p>
          <Users ids={users} />
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

async function usersOf(name: string): Promise<string[]> {
  try {
    return (await get(api.GET("/api/v1/datasets/{name}", { params: { path: { name } } }))).in_use_by;
  } catch (error) {
    if (error instanceof Failure) return []; // the refusal itself is shown; the last of them has just ended
    throw error;
  }
}
