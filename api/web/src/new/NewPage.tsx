/** Submit a new search: begin with a preset or an earlier search, change what matters, read what will happen. */

import { useMemo, useRef } from "react";

import { api, useQuery } from "../api/client";
import type { Catalog, Dataset, Search } from "../api/types";
import { useCatalog } from "../blocks";
import { useLocation } from "../router";
import { Button } from "../ui/Button";
import { Problem } from "../ui/Problem";
import { atPart, check } from "./checks";
import { FormProvider } from "./context";
import { nameIn } from "./draft";
import { placeFor } from "./json";
import type { Editor } from "./JsonEditor";
import "./new.css";
import { Plan } from "./Plan";
import { Presets } from "./Presets";
import { RequestForm } from "./RequestForm";
import { RequestText } from "./RequestText";
import { rulesOf } from "./schema";
import { FIRST_PRESET, useDraft } from "./useDraft";
import { standing, useSubmit } from "./useSubmit";

export function NewPage() {
  const catalog = useCatalog();
  const from = useLocation().query.get("from");
  const earlier = useQuery(from && `search ${from}`, (signal) =>
    api.GET("/api/v1/searches/{search_id}", { params: { path: { search_id: from ?? "" } }, signal }),
  );
  const datasets = useQuery("datasets", (signal) => api.GET("/api/v1/datasets", { signal }));
  const problem = catalog.problem ?? earlier.problem ?? datasets.problem;
  return (
    <div className="stack">
      <h1>New search</h1>
      {problem && <Problem problem={problem} title="The form cannot be filled" />}
      {catalog.data && datasets.data && (from === null || earlier.data) && (
        <Writing catalog={catalog.data} from={earlier.data ?? null} datasets={datasets.data.items} />
      )}
    </div>
  );
}

function Writing({ catalog, from, datasets }: { catalog: Catalog; from: Search | null; datasets: Dataset[] }) {
  const { draft, tell, start, aside, bringBack, dismiss } = useDraft(catalog, datasets, from);
  const submission = useSubmit();
  const editor = useRef<Editor>(null);
  const rules = useMemo(() => rulesOf(catalog), [catalog]);
  const { value, error, places } = draft;

  const { refusal } = submission;
  const found = useMemo(() => {
    const refused = standing(refusal, value).map((each) => atPart(value, each));
    return [
      ...refused,
      ...check(rules, value).filter((ours) => !refused.some((each) => each.pointer === ours.pointer)),
    ];
  }, [rules, value, refusal]);
  const findings = useMemo(() => grouped(found.map(({ pointer, detail }) => [pointer, detail])), [found]);
  const marks = useMemo(() => {
    if (error) return grouped([[error.place.line, error.message]]);
    return grouped(found.map(({ pointer, detail }) => [(places && placeFor(places, pointer)?.line) ?? 1, detail]));
  }, [found, error, places]);

  const show = (line: number) => editor.current?.show(line);
  const reveal = (pointer: string) => {
    const field = document.getElementById(`field${pointer}`);
    for (let fold = field?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
    if (field) field.focus();
    else show((places && placeFor(places, pointer)?.line) ?? 1);
  };
  const submit = async () => {
    const wrong = check(rules, value)[0] ?? (await submission.submit(draft))?.errors[0];
    if (wrong) reveal(atPart(value, wrong).pointer);
  };

  return (
    <FormProvider
      value={{ catalog, schema: rules.schema, value, findings, change: (...parts) => tell({ type: "set", parts }) }}
    >
      {aside && (
        <div className="notice" role="status">
          <span>What you had written of {nameIn(aside)} was put aside.</span>
          <Button onClick={bringBack}>Bring it back</Button>
          <Button kind="quiet" onClick={dismiss} aria-label="dismiss">
            ×
          </Button>
        </div>
      )}
      <Presets
        catalog={catalog}
        source={draft.source || `preset=${FIRST_PRESET}`}
        from={from}
        choose={(name) => start(`preset=${encodeURIComponent(name)}`)}
      />
      <div className="writing">
        <fieldset className="stack writing-form" disabled={error !== null}>
          <legend className="visually-hidden">request</legend>
          <RequestForm datasets={datasets} />
        </fieldset>
        <div className="writing-side">
          <Plan {...{ draft, found, submission, reveal }} submit={() => void submit()} />
          <RequestText {...{ draft, tell, marks, editor, show }} />
        </div>
      </div>
    </FormProvider>
  );
}

function grouped<K>(pairs: [K, string][]): Map<K, string[]> {
  const found = new Map<K, string[]>();
  for (const [key, detail] of pairs) found.set(key, [...(found.get(key) ?? []), detail]);
  return found;
}
