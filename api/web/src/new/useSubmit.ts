/** Sends the request once, however often the button is pressed, and keeps what the service refused. */

import { useRef, useState } from "react";

import { api, get as got, Problem as Failure } from "../api/client";
import type { SearchRequest } from "../api/types";
import { here, navigate } from "../router";
import { type Draft, forget } from "./draft";
import type { Json } from "./json";
import { get, same } from "./pointer";

export interface Refusal {
  problem: Failure;
  /** The request that was refused. */
  value: Json;
}

export interface Submission {
  sending: boolean;
  refusal: Refusal | null;
  /** Goes to the search's page; a refusal stays here and is returned. */
  submit: (draft: Draft) => Promise<Failure | null>;
}

export function useSubmit(): Submission {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [sending, setSending] = useState(false);
  const busy = useRef(false); // at once, unlike state: the second click of two finds it set
  const submit = async ({ key, text, value }: Draft) => {
    if (busy.current) return null;
    busy.current = true;
    setSending(true);
    setRefusal(null);
    const stillHere = here();
    try {
      const params = { header: { "idempotency-key": key } };
      const search = await got(api.POST("/api/v1/searches", { params, body: value as unknown as SearchRequest }));
      forget({ text });
      if (stillHere()) navigate(`/searches/${search.id}`);
      return null;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setRefusal({ problem: error, value });
      return error;
    } finally {
      busy.current = false;
      setSending(false);
    }
  };
  return { sending, refusal, submit };
}

/** Of a refusal, what still holds: what was changed since is no longer what the service refused. */
export function standing(refusal: Refusal | null, value: Json): { pointer: string; detail: string }[] {
  return (refusal?.problem.errors ?? []).filter(({ pointer, code }) => {
    const part = code === "too-short" ? "" : pointer; // a text is too short for other fields too
    return same(get(value, part), get(refusal?.value, part));
  });
}
