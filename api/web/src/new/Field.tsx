/** The fields of the form, each over one pointer; description and limits come from the schema. */

import { useState, type ReactNode } from "react";

import { useForm, usePart } from "./context";
import type { Json } from "./json";
import { grouped } from "./plan";
import type { Schema } from "./schema";

function Frame({
  id,
  label,
  hint,
  findings,
  children,
  wide = false,
}: {
  id: string;
  label: ReactNode;
  hint?: ReactNode;
  findings: string[];
  children: ReactNode;
  wide?: boolean;
}) {
  return (
    <div className={wide ? "field field-wide" : "field"}>
      <label htmlFor={id}>{label}</label>
      {children}
      {findings.length > 0 ? (
        <p className="field-wrong" id={`${id}-note`}>
          {findings.join("; ")}
        </p>
      ) : (
        hint && (
          <p className="field-hint" id={`${id}-note`}>
            {hint}
          </p>
        )
      )}
    </div>
  );
}

const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;

/** The number that a text means, or the text itself, for the checks to refuse. */
export function numberOf(text: string, empty: Json = ""): Json {
  if (text.trim() === "") return empty;
  return NUMBER.test(text) ? Number(text) : text;
}

function limits(schema: Schema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const low =
    minimum !== undefined
      ? grouped(minimum)
      : exclusiveMinimum !== undefined
        ? `above ${grouped(exclusiveMinimum)}`
        : "";
  const high =
    maximum !== undefined
      ? grouped(maximum)
      : exclusiveMaximum !== undefined
        ? `below ${grouped(exclusiveMaximum)}`
        : "";
  if (low && high) return low.startsWith("above") ? `${low}, at most ${high}` : `${low} to ${high}`;
  return low ? (low.startsWith("above") ? low : `at least ${low}`) : high;
}

interface Writing {
  pointer: string;
  label: string;
  hint?: ReactNode;
  /** The schema, where the request's has none: of a block's option. */
  own?: Schema;
  /** Instead of writing the one part. */
  onChange?: (part: Json) => void;
}

/** A number. What is typed is kept while it is typed: "1e-" is on its way to 1e-3. */
export function NumberField({
  pointer,
  label,
  hint,
  unit,
  empty,
  own,
  onChange,
}: Writing & {
  unit?: string;
  /** What an empty field means, where the number may be left out. */
  empty?: string;
}) {
  const { id, part, schema, nullable, findings, set } = usePart(pointer, own);
  const [typed, setTyped] = useState<string | null>(null);
  const shown = part === null || part === undefined ? "" : String(part);
  return (
    <Frame id={id} label={label} hint={hint ?? schema.description} findings={findings}>
      <span className="field-line">
        <input
          id={id}
          className="input"
          inputMode={schema.type === "integer" ? "numeric" : "decimal"}
          autoComplete="off"
          value={typed ?? shown}
          placeholder={nullable ? (empty ?? "auto") : undefined}
          title={limits(schema)}
          aria-invalid={findings.length > 0}
          aria-describedby={`${id}-note`}
          onChange={(event) => {
            setTyped(event.target.value);
            (onChange ?? set)(numberOf(event.target.value, nullable ? null : ""));
          }}
          onBlur={() => setTyped(null)}
        />
        {unit && <span className="quieter">{unit}</span>}
      </span>
    </Frame>
  );
}

export function TextField({ pointer, label, hint }: { pointer: string; label: string; hint?: ReactNode }) {
  const { id, part, schema, findings, set } = usePart(pointer);
  return (
    <Frame id={id} label={label} hint={hint ?? schema.description} findings={findings} wide>
      <input
        id={id}
        className="input"
        autoComplete="off"
        value={part === null || part === undefined ? "" : String(part)}
        aria-invalid={findings.length > 0}
        aria-describedby={`${id}-note`}
        onChange={(event) => set(event.target.value)}
      />
    </Frame>
  );
}

export interface ChoiceOption {
  value: string;
  words: string;
  group?: string;
}

/** One of several; null, where it may be, is "auto". */
export function ChoiceField({
  pointer,
  label,
  hint,
  choices,
  wide = false,
  own,
  onChange,
}: Writing & {
  /** Left out: those of the schema. Those with a group stand under its name. */
  choices?: ChoiceOption[];
  wide?: boolean;
}) {
  const { id, part, schema, nullable, findings, set } = usePart(pointer, own);
  const offered: ChoiceOption[] = choices ?? [
    ...(nullable ? [{ value: "", words: "auto" }] : []),
    ...(schema.enum ?? []).map((each) => ({ value: String(each), words: String(each).replaceAll("_", " ") })),
  ];
  const unknown = typeof part === "string" && !offered.some((each) => each.value === part);
  return (
    <Frame id={id} label={label} hint={hint ?? schema.description} findings={findings} wide={wide}>
      <select
        id={id}
        className="input"
        value={typeof part === "string" ? part : ""}
        aria-invalid={findings.length > 0}
        aria-describedby={`${id}-note`}
        onChange={(event) => (onChange ?? set)(nullable && event.target.value === "" ? null : event.target.value)}
      >
        {unknown && <option value={part}>{part || "–"}</option>}
        <Options of={offered.filter((each) => each.group === undefined)} />
        {[...new Set(offered.flatMap((each) => each.group ?? []))].map((group) => (
          <optgroup key={group} label={group}>
            <Options of={offered.filter((each) => each.group === group)} />
          </optgroup>
        ))}
      </select>
    </Frame>
  );
}

function Options({ of: options }: { of: ChoiceOption[] }) {
  return options.map(({ value, words }) => (
    <option key={value} value={value}>
      {words}
    </option>
  ));
}

/** Yes or no. */
export function CheckField({ pointer, label, hint, own, onChange }: Writing) {
  const { id, part, schema, findings, set } = usePart(pointer, own);
  return (
    <Frame id={id} label={"\u00a0"} hint={hint ?? schema.description} findings={findings}>
      <label className="check">
        <input
          id={id}
          type="checkbox"
          checked={part === true}
          aria-invalid={findings.length > 0}
          aria-describedby={`${id}-note`}
          onChange={(event) => (onChange ?? set)(event.target.checked)}
        />
        {label}
      </label>
    </Frame>
  );
}

/** Whole numbers with commas between; none of them, where the list may be left out, is "auto". */
function ListField({ pointer, label, hint, own, onChange }: Writing) {
  const { id, part, schema, nullable, findings, set } = usePart(pointer, own);
  const [typed, setTyped] = useState<string | null>(null);
  const shown = Array.isArray(part) ? part.join(", ") : "";
  return (
    <Frame id={id} label={label} hint={hint ?? schema.description} findings={findings}>
      <input
        id={id}
        className="input"
        autoComplete="off"
        value={typed ?? shown}
        placeholder={nullable ? "auto" : "none"}
        aria-invalid={findings.length > 0}
        aria-describedby={`${id}-note`}
        onChange={(event) => {
          setTyped(event.target.value);
          const parts = event.target.value.split(",").filter((each) => each.trim() !== "");
          (onChange ?? set)(nullable && parts.length === 0 ? null : parts.map((each) => numberOf(each)));
        }}
        onBlur={() => setTyped(null)}
      />
    </Frame>
  );
}

/** The name of a field as its label. */
export function titled(name: string): string {
  const words = name.replace(/^n_/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whatever the schema says that the part is. */
export function AnyField(field: Writing) {
  const { schema } = usePart(field.pointer, field.own);
  const said = field.hint ?? schema.description;
  // The service speaks of None, the form of what it means.
  const empty = typeof said === "string" && said.includes("None: all") ? "all" : "auto";
  const hint = typeof said === "string" ? said.replace("; None: all", "").replaceAll("None", empty).replaceAll("`", "") : said;
  const writing = { ...field, hint, empty };
  if (schema.enum) return <ChoiceField {...writing} />;
  if (schema.type === "boolean") return <CheckField {...writing} />;
  if (schema.type === "array") return <ListField {...writing} />;
  return <NumberField {...writing} />;
}

/** What is wrong with a part that has no field of its own. */
export function Findings({ pointer }: { pointer: string }) {
  const { findings } = useForm();
  const found = findings.get(pointer) ?? [];
  return found.length > 0 ? <p className="field-wrong">{found.join("; ")}</p> : null;
}
