/** What the derived model may cost: any mix of bounds, each as a number or against the parent. */

import { useId } from "react";

import { Card } from "../ui/Card";
import { useForm, usePart } from "./context";
import { Findings, NumberField } from "./Field";
import type { Json } from "./json";
import { get } from "./pointer";

interface Kind {
  name: string;
  label: string;
  /** Field of the bound that is a number, its unit, and where it begins. */
  absolute: string;
  unit: string;
  begins: number;
}

const KINDS: readonly Kind[] = [
  { name: "latency", label: "Latency", absolute: "ms", unit: "ms", begins: 5 },
  { name: "parameters", label: "Parameters", absolute: "at_most", unit: "weights", begins: 1_000_000 },
  { name: "flops", label: "Operations", absolute: "at_most", unit: "FLOPs", begins: 1_000_000_000 },
  { name: "cache_bytes", label: "Cache", absolute: "at_most", unit: "bytes", begins: 1_000_000 },
];

export function BudgetCard() {
  return (
    <Card title="Budget">
      {KINDS.map((kind) => (
        <BoundFields key={kind.name} kind={kind} />
      ))}
      <Findings pointer="/budget" />
    </Card>
  );
}

function BoundFields({ kind: { name, label, absolute, unit, begins } }: { kind: Kind }) {
  const id = useId();
  const { value, change } = useForm();
  const pointer = `/budget/${name}`;
  const { schema } = usePart(pointer);
  const bound = get(value, pointer) ?? null;
  const number = bound !== null && (get(bound, `/${absolute}`) ?? null) !== null;
  const kind = bound === null ? "none" : number ? "number" : "ratio";
  const choose = (wanted: string) => {
    const bounds: Record<string, Json> = {
      none: null,
      number: { [absolute]: begins, ratio_to_parent: null },
      ratio: { [absolute]: null, ratio_to_parent: 1 },
    };
    change([pointer, bounds[wanted] ?? null]);
  };
  return (
    <div className="bound">
      <div className="field">
        <label htmlFor={id}>{label}</label>
        <select id={id} className="input" value={kind} onChange={(event) => choose(event.target.value)}>
          <option value="none">no bound</option>
          <option value="ratio">ratio to the parent</option>
          <option value="number">{unit}</option>
        </select>
      </div>
      {kind === "ratio" && (
        <NumberField
          pointer={`${pointer}/ratio_to_parent`}
          label={`${label} at most`}
          unit="× parent"
          hint="the parent alternates attention and FFN"
        />
      )}
      {kind === "number" && (
        <NumberField pointer={`${pointer}/${absolute}`} label={`${label} at most`} unit={unit} hint={" "} />
      )}
      <p className="field-hint">{schema.description?.replace("; None: no bound", "")}</p>
      <Findings pointer={pointer} />
    </div>
  );
}
