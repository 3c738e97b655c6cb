/** Submit a new search: begin with a preset or an earlier search, change what matters, read what will happen. */

import { useEffect, useMemo, useReducer, useRef, useState } from "react";

import { api, get as got, Problem as Failure, useQuery } from "../api/client";
import type { Catalog, Dataset, Search, SearchRequest } from "../api/types";
import { useCatalog } from "../blocks";
import { navigate, useLocation } from "../router";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Problem } from "../ui/Problem";
import { check } from "./checks";
import { FormProvider } from "./context";
import { changed, forget, kept, newKey, store, stored, type Change, type Draft, type Stored } from "./draft";
import { type Json, placeFor } from "./json";
import { type Editor, JsonEditor } from "./JsonEditor";
import "./new.css";
import { plan } from "./plan";
import { get, same, set } from "./pointer";
import { Presets } from "./Presets";
import { RequestForm } from "./RequestForm";
import type { BlockOptions, Schema } from "./schema";

export function NewPage() {
  const catalog = useCatalog();
  const { query } = useLocation();
  const from = query.get("from");
  const earlier = useQuery(from && `search ${from}`, (signal) =>
    api.GET("/api/v1/searches/{search_id}", { params: { path: { search_id: from ?? "" } }, signal }),
  );
  const datasets = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }));
  const problem = catalog.problem ?? earlier.problem;
  return (
    <div className="stack">
      <h1>New search</h1>
      {problem && <Problem problem={problem} title="The form cannot be filled" />}
      {catalog.data && (from === null || earlier.data) && (
        <Writing
          catalog={catalog.data}
          from={from === null ? null : (earlier.data ?? null)}
          datasets={datasets.data?.items ?? []}
        />
      )}
    </div>
  );
}

const FIRST_PRESET = "quickstart";

/** The part of the address that says what the request begins as. */
function sourceOf(query: URLSearchParams): string {
  const named = ["from", "preset", "dataset"].filter((name) => query.get(name));
  return named.map((name) => `${name}=${encodeURIComponent(query.get(name) ?? "")}`).join("&");
}

function begin(catalog: Catalog, from: Search | null, query: URLSearchParams): Json {
  const preset = query.get("preset") ?? FIRST_PRESET;
  let request = (from?.request ?? catalog.presets[preset] ?? Object.values(catalog.presets)[0] ?? {}) as Json;
  if (from) {
    // What the earlier run filled in: found again for the changed request, or measured anew where it does not fit.
    request = set(set(request, "/latency_table", null), "/task/dataset_fingerprint", null);
  }
  const dataset = query.get("dataset");
  return dataset ? set(set(request, "/task/dataset", dataset), "/name", dataset) : request;
}

function Writing({ catalog, from, datasets }: { catalog: Catalog; from: Search | null; datasets: Dataset[] }) {
  const { query } = useLocation();
  const source = sourceOf(query);
  const schema = catalog.request_schema as Schema;
  const rules = useMemo(() => ({ schema, blocks: catalog.blocks as unknown as BlockOptions[] }), [catalog, schema]);
  const [replaced, setReplaced] = useState<Stored | null>(null);
  const [draft, tell] = useReducer(
    (before: Draft | null, change: Change) => changed(rules, before, change),
    null,
    (): Draft | null => {
      const before = stored();
      if (before && (source === "" || before.source === source)) {
        return changed(rules, null, { type: "restored", draft: before });
      }
      return changed(rules, null, { type: "loaded", source, request: begin(catalog, from, query) });
    },
  );
  const [refusal, setRefusal] = useState<{ problem: Failure; value: Json } | null>(null);
  const [sending, setSending] = useState(false);
  const busy = useRef(false); // at once, unlike state: the second click of two finds it set
  const editor = useRef<Editor>(null);

  // Another address, such as a preset: the draft begins anew, and what was written can be brought back.
  const shown = useRef<string | null>(null);
  useEffect(() => {
    if (shown.current === source) return;
    const first = shown.current === null;
    shown.current = source;
    if (first) {
      const before = stored();
      if (before && source !== "" && before.source !== source && before.text !== before.loaded) setReplaced(before);
      return;
    }
    if (draft === null || draft.source === source || source === "") return;
    if (draft.text !== draft.loaded) setReplaced(kept(draft));
    setRefusal(null);
    tell({ type: "loaded", source, request: begin(catalog, from, query) });
  });
  useEffect(() => {
    if (draft) store(draft);
  }, [draft]);

  const value = draft?.value ?? null;
  const found = useMemo(() => {
    // What was changed since is no longer what the service refused; a text is too short for other fields too.
    const standing = (refusal?.problem.errors ?? []).filter(({ pointer, code }) => {
      const part = code === "too-short" ? "" : pointer;
      return same(get(value, part), get(refusal?.value, part));
    });
    const ours = check(schema, value).filter(({ pointer }) => !standing.some((each) => each.pointer === pointer));
    return [...standing, ...ours];
  }, [schema, value, refusal]);
  const findings = useMemo(() => {
    const byPointer = new Map<string, string[]>();
    for (const { pointer, detail } of found) byPointer.set(pointer, [...(byPointer.get(pointer) ?? []), detail]);
    return byPointer;
  }, [found]);
  const marks = useMemo(() => {
    const byLine = new Map<number, string[]>();
    if (draft?.error) byLine.set(draft.error.place.line, [draft.error.message]);
    for (const { pointer, detail } of found) {
      const line = draft?.places && placeFor(draft.places, pointer)?.line;
      if (line) byLine.set(line, [...(byLine.get(line) ?? []), detail]);
    }
    return byLine;
  }, [found, draft]);

  if (draft === null) return null;

  const submit = async () => {
    if (busy.current) return;
    if (draft.error) return editor.current?.show(draft.error.place.line);
    const first = check(schema, draft.value)[0];
    if (first) return reveal(first.pointer);
    busy.current = true;
    setSending(true);
    setRefusal(null);
    try {
      const search = await got(
        api.POST("/api/v1/searches", {
          params: { header: { "idempotency-key": draft.key } },
          body: draft.value as unknown as SearchRequest,
        }),
      );
      forget();
      navigate(`/searches/${search.id}`);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setRefusal({ problem: error, value: draft.value });
      setSending(false);
      const pointer = error.errors[0]?.pointer;
      if (pointer) reveal(pointer);
    } finally {
      busy.current = false;
    }
  };
  const reveal = (pointer: string) => {
    const field = document.getElementById(`field${pointer}`);
    field?.closest("details")?.setAttribute("open", "");
    if (field) field.focus();
    else showLine(pointer);
  };
  const showLine = (pointer: string) => {
    const place = draft.places && placeFor(draft.places, pointer);
    if (place) editor.current?.show(place.line);
  };

  const sentences = plan(draft.value);
  return (
    <FormProvider
      value={{
        catalog,
        schema,
        value: draft.value,
        findings,
        change: (...parts) => tell({ type: "set", parts }),
      }}
    >
      {replaced && (
        <div className="notice" role="status">
          <span>What you had written of {nameIn(replaced)} was put aside.</span>
          <Button
            onClick={() => {
              tell({ type: "restored", draft: { ...replaced, key: newKey() } });
              shown.current = replaced.source;
              navigate(`/new?${replaced.source}`, { replace: true });
              setReplaced(null);
            }}
          >
            Bring it back
          </Button>
          <Button kind="quiet" onClick={() => setReplaced(null)} aria-label="dismiss">
            ×
          </Button>
        </div>
      )}
      <Presets
        catalog={catalog}
        source={draft.source || `preset=${FIRST_PRESET}`}
        from={from}
        choose={(name) => {
          if (draft.text !== draft.loaded) setReplaced(kept(draft));
          const chosen = `preset=${encodeURIComponent(name)}`;
          shown.current = chosen;
          setRefusal(null);
          tell({ type: "loaded", source: chosen, request: catalog.presets[name] as Json });
          navigate(`/new?${chosen}`, { replace: true });
        }}
      />
      <div className="writing">
        <fieldset className="stack writing-form" disabled={draft.error !== null}>
          <legend className="visually-hidden">request</legend>
          <RequestForm datasets={datasets} />
        </fieldset>
        <div className="writing-side">
          <Card title="What will happen" className="plan">
            {sentences.map((each) => (
              <p key={each}>{each}</p>
            ))}
            {found.length > 0 && !draft.error && (
              <ul className="plan-wrong" aria-label="what is wrong">
                {found.map(({ pointer, detail }, at) => (
                  <li key={at}>
                    <button type="button" className="link" onClick={() => reveal(pointer)}>
                      {pointer || "request"}
                    </button>{" "}
                    {detail}
                  </li>
                ))}
              </ul>
            )}
            {refusal && refusal.problem.errors.length === 0 && same(refusal.value, draft.value) && (
              <Problem problem={refusal.problem} title="Not queued" />
            )}
            <Button kind="primary" disabled={sending || draft.error !== null} onClick={() => void submit()}>
              {sending ? "Starting …" : "Start the search"}
            </Button>
          </Card>
          <Card
            title="Request"
            className="request"
            aside={
              <Button
                kind="quiet"
                onClick={() => tell({ type: "formatted" })}
                title={
                  draft.error ? "back to the last request that was valid" : "one field a line, defaults written out"
                }
              >
                {draft.error ? "restore" : "format"}
              </Button>
            }
          >
            <p
              id="json-status"
              role="status"
              className={draft.error ? "json-status field-wrong" : "json-status quieter"}
            >
              {draft.error ? (
                <button
                  type="button"
                  className="link"
                  onClick={() => draft.error && editor.current?.show(draft.error.place.line)}
                >
                  line {draft.error.place.line}, column {draft.error.place.column}
                </button>
              ) : (
                "The whole request; the form follows it, and it follows the form."
              )}
              {draft.error && `: ${draft.error.message}`}
            </p>
            <JsonEditor
              ref={editor}
              text={draft.text}
              onText={(text) => tell({ type: "typed", text })}
              marks={marks}
              describedBy="json-status"
            />
          </Card>
        </div>
      </div>
    </FormProvider>
  );
}

function nameIn({ text }: { text: string }): string {
  const name = /"name":\s*"((?:\\.|[^"\\])*)"/.exec(text)?.[1];
  return name ? `“${name}”` : "another request";
}
