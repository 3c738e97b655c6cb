/** Asks for the service's token, in place; the service answers with a cookie that scripts cannot read. */

import { type FormEvent, useState } from "react";

import { Problem as Failure } from "../api/client";
import { connection, session } from "../api/connection";
import { Button } from "./Button";
import { Card } from "./Card";
import { Problem } from "./Problem";

async function open(token: string): Promise<void> {
  let answer: Response;
  try {
    answer = await fetch("/api/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
  } catch {
    connection.lost();
    throw new Failure(0, {});
  }
  connection.found();
  if (!answer.ok) throw new Failure(answer.status, await answer.json().catch(() => ({})));
}

export function SignIn() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await open(token.trim());
      session.opened();
    } catch (error) {
      if (error instanceof Failure) setProblem(error);
      else throw error;
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="sign-in">
      <Card title="Sign in">
        <form onSubmit={(event) => void submit(event)}>
          <label htmlFor="token" className="quiet">
            This service asks for its token: the one in <code>BLOCKWRIGHT_TOKEN</code> where it was started.
          </label>
          {/* For password managers, which keep a name with each password. */}
          <input type="text" name="username" autoComplete="username" value="blockwright" readOnly hidden />
          <input
            id="token"
            name="password"
            className="input"
            type="password"
            autoComplete="current-password"
            autoFocus
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
          {problem && <Problem problem={problem} />}
          <Button kind="primary" type="submit" disabled={busy || token.trim() === ""}>
            Sign in
          </Button>
        </form>
      </Card>
    </div>
  );
}
