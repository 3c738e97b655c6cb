/** What an upload is and where its rows keep what counts: guessed from the file, all of it changeable. */

import { useId, type ReactNode } from "react";

import {
  COMPRESSIONS,
  CORPORA,
  FORMATS,
  FORMAT_WORDS,
  hasLists,
  isRecords,
  ofWords,
  type Compression,
  type Field,
  type Format,
  type FormatDraft,
} from "./format";

type Change = (changes: Partial<FormatDraft>) => void;

export function FormatFields({
  draft,
  columns,
  change,
}: {
  draft: FormatDraft;
  /** Columns that were seen in the file; suggestions. */
  columns: readonly string[];
  change: Change;
}) {
  const list = useId();
  const field = (label: string, name: Field, hint: string, empty = "none") => (
    <Typed label={label} hint={hint} value={draft[name]} empty={empty} list={list} put={(text) => change({ [name]: text })} />
  );
  return (
    <div className="upload-fields">
      <Chosen
        label="Format"
        value={draft.format}
        options={FORMATS.map((each) => [each, FORMAT_WORDS[each]])}
        put={(format) => change({ format: format as Format })}
      />
      <Chosen
        label="Compression"
        value={draft.compression}
        options={COMPRESSIONS.map((each) => [each, each])}
        put={(compression) => change({ compression: compression as Compression })}
      />
      {draft.format === "text" && (
        <Chosen
          label="Splits of"
          value={draft.corpus}
          options={[["", "our own"], ...CORPORA.map((each): [string, string] => [each, `${each}, as published`])]}
          put={(corpus) => change({ corpus })}
          hint="a published corpus keeps its parts"
        />
      )}
      {hasLists(draft.format) && (
        <Chosen
          label="Each row has"
          value={draft.rows}
          options={[
            ["text", "a text"],
            ["words", "words, each with a label"],
          ]}
          put={(rows) => change({ rows: rows as FormatDraft["rows"] })}
        />
      )}
      {isRecords(draft.format) && !ofWords(draft) && (
        <>
          {field("Text field", "text", "what the models read", "text")}
          {field("Pair field", "pair", "a second text, if any")}
          {field("Label field", "label", "for classification, if any", '"label" if there')}
        </>
      )}
      {ofWords(draft) && (
        <>
          {field("Words field", "words", "a list of words", "words")}
          {field("Labels field", "labels", "as many labels", "labels")}
        </>
      )}
      {draft.format === "tokens" && (
        <>
          <Chosen
            label="Numbers"
            value={draft.dtype}
            options={["uint16", "uint32"].map((each) => [each, each])}
            put={(dtype) => change({ dtype: dtype as FormatDraft["dtype"] })}
            hint="little-endian, no header"
          />
          <Typed
            label="Vocabulary"
            hint="all ids are below it"
            value={draft.vocab_size}
            numeric
            put={(vocab_size) => change({ vocab_size })}
          />
          <Typed
            label="End id"
            hint="ends a document, if any"
            value={draft.eos_id}
            empty="none"
            numeric
            put={(eos_id) => change({ eos_id })}
          />
        </>
      )}
      <datalist id={list}>
        {columns.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </div>
  );
}

function Framed({ id, label, hint, children }: { id: string; label: string; hint?: string | undefined; children: ReactNode }) {
  return (
    <div className="upload-field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint && (
        <p className="quieter" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

function Chosen({
  label,
  value,
  options,
  put,
  hint,
}: {
  label: string;
  value: string;
  options: [value: string, words: string][];
  put: (value: string) => void;
  hint?: string;
}) {
  const id = useId();
  return (
    <Framed {...{ id, label, hint }}>
      <select
        id={id}
        className="input"
        value={value}
        aria-describedby={hint && `${id}-hint`}
        onChange={(event) => put(event.target.value)}
      >
        {options.map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </select>
    </Framed>
  );
}

function Typed({
  label,
  hint,
  value,
  empty,
  list,
  numeric = false,
  put,
}: {
  label: string;
  hint: string;
  value: string;
  empty?: string;
  list?: string;
  numeric?: boolean;
  put: (text: string) => void;
}) {
  const id = useId();
  return (
    <Framed {...{ id, label, hint }}>
      <input
        id={id}
        className="input"
        value={value}
        list={list}
        inputMode={numeric ? "numeric" : undefined}
        placeholder={empty}
        autoComplete="off"
        spellCheck={false}
        aria-describedby={`${id}-hint`}
        onChange={(event) => put(event.target.value)}
      />
    </Framed>
  );
}
