/** What matters of a request, as fields; everything else stands in the JSON beside. */

import { useId } from "react";

import type { Dataset } from "../api/types";
import { Card } from "../ui/Card";
import { Candidates } from "./Candidates";
import { useForm } from "./context";
import { DataCard } from "./DataCard";
import { AnyField, ChoiceField, Findings, NumberField, titled } from "./Field";
import { Fold } from "./Fold";
import type { Json } from "./json";
import { get } from "./pointer";
import { resolved, wordsOf } from "./schema";

export function RequestForm({ datasets }: { datasets: Dataset[] }) {
  return (
    <>
      <DataCard datasets={datasets} />
      <Card title="Model">
        <div className="fields">
          <NumberField pointer="/space/n_slots" label="Slots" hint="one block each" />
          <NumberField pointer="/space/d_model" label="Width" hint="residual stream" />
          <NumberField pointer="/space/n_heads" label="Heads" hint={<HeadWidth />} />
          <Length />
        </div>
        <Findings pointer="/space" />
        <h3 className="form-heading">Candidates of each slot</h3>
        <Candidates />
        <Backbone />
      </Card>
      <Card title="Search">
        <div className="fields">
          <NumberField pointer="/method/n_steps" label="Weight updates" hint="of each supernet" />
          <NumberField pointer="/trials/n_seeds" label="Seeds" hint="supernets apart by chance alone" />
          <NumberField pointer="/trials/seed" label="First seed" hint="the others follow" />
        </div>
        <Findings pointer="/method" />
        <Fold summary="More of the training" parts={["/method"]}>
          <div className="fields">
            <ChoiceField pointer="/method/alpha_estimator" label="Estimator" hint="how choices carry gradients" />
            <NumberField pointer="/method/batch_size" label="Batch" />
            <NumberField pointer="/method/lr" label="Learning rate" />
            <NumberField pointer="/method/alpha_lr" label="Rate of alpha" />
            <NumberField pointer="/method/warmup_share" label="Warm-up share" />
            <NumberField pointer="/method/alpha_share" label="Alpha share" hint="share of updates that are alpha's" />
            <NumberField pointer="/method/tau_start" label="First temperature" />
            <NumberField pointer="/method/tau_end" label="Last temperature" />
            <NumberField
              pointer="/method/cost_weight"
              label="Cost weight"
              hint="nats a token, when twice over the budget"
            />
            <NumberField
              pointer="/method/report_every"
              label="Report every"
              unit="updates"
              hint="points on the curves"
            />
            <NumberField pointer="/method/max_minutes" label="At most" unit="minutes" />
          </div>
        </Fold>
      </Card>
      <Card title="Latency budget">
        <Budget />
      </Card>
      <Card title="Retraining">
        <div className="fields">
          <NumberField pointer="/retrain/n_steps" label="Weight updates" hint="of each retraining" />
          <NumberField pointer="/retrain/n_seeds" label="Seeds" hint="shared by all architectures" />
          <Baseline />
        </div>
      </Card>
      <Card title="Resources of a trial">
        <div className="fields">
          <NumberField pointer="/resources/cpus" label="CPUs" hint="one is one thread" />
          <NumberField pointer="/resources/gpus" label="GPUs" hint="0: trained on the CPU" />
        </div>
        <Findings pointer="/resources" />
      </Card>
    </>
  );
}

/** Fields of the space that stand elsewhere. */
const ELSEWHERE = ["n_slots", "d_model", "n_heads", "candidates", "backbone"];
const SHORT: Record<string, string> = {
  rms: "RMSNorm",
  layer: "LayerNorm",
  rotary: "rotary",
  none: "no positions",
  relative_bias: "relative bias",
  transformer_xl: "Transformer-XL",
};

/** What is not searched: every field of the schema, so that a new one needs no line here. */
function Backbone() {
  const { schema, value } = useForm();
  const space = resolved(schema, schema.properties?.["space"] ?? {});
  const { $ref } = space.properties?.["backbone"] ?? {};
  const around = resolved(schema, { $ref }); // by itself, for the words of its class
  const names = Object.keys(space.properties ?? {}).filter((name) => !ELSEWHERE.includes(name));
  const parts = Object.keys(around.properties ?? {});
  const text = (name: string) => String(get(value, `/space/${name}`) ?? "");
  const said = [text("positions"), text("norm")].map((each) => SHORT[each] ?? each);
  const memory = Number(get(value, "/space/memory_length"));
  const summary = [...said, `${text("norm_position")}-norm`, ...(memory > 0 ? [`memory of ${memory}`] : [])].join(", ");
  return (
    <Fold
      summary={
        <>
          Backbone <span className="quieter">{summary}</span>
        </>
      }
      parts={[...names.map((name) => `/space/${name}`), "/space/backbone"]}
    >
      <div className="fields fields-told">
        {names.map((name) => (
          <AnyField key={name} pointer={`/space/${name}`} label={titled(name)} />
        ))}
        {parts.map((name) => (
          <AnyField key={name} pointer={`/space/backbone/${name}`} label={titled(name)} hint={wordsOf(around, name)} />
        ))}
      </div>
      <Findings pointer="/space/backbone" />
    </Fold>
  );
}

function HeadWidth() {
  const { value } = useForm();
  const width = Number(get(value, "/space/d_model")) / Number(get(value, "/space/n_heads"));
  return Number.isInteger(width) ? <>each {width} wide</> : <>attention heads</>;
}

/** The training length; what stood at the same length follows it: the model's longest input, and serving. */
function Length() {
  const { value, change } = useForm();
  const before = get(value, "/task/train_length");
  const serve = get(value, "/task/serve");
  const followers = [
    "/space/max_len",
    ...(Array.isArray(serve) ? serve : []).map((_, at) => `/task/serve/${at}/query_length`),
  ].filter((pointer) => get(value, pointer) === before);
  return (
    <NumberField
      pointer="/task/train_length"
      label="Length"
      unit="tokens"
      hint="of a training window"
      onChange={(part: Json) =>
        change(["/task/train_length", part], ...followers.map((each): [string, Json] => [each, part]))
      }
    />
  );
}

function Budget() {
  const id = useId();
  const { value, change } = useForm();
  const latency = get(value, "/budget/latency") ?? null;
  const memory = ["/space", "/task/serve/0"].some((part) => Number(get(value, `${part}/memory_length`)) > 0);
  const ms = latency !== null && (get(latency, "/ms") ?? null) !== null;
  const kind = latency === null ? "none" : ms ? "ms" : "ratio";
  const choose = (wanted: string) =>
    change([
      "/budget/latency",
      wanted === "none" ? null : wanted === "ms" ? { ms: 5, ratio_to_parent: null } : { ms: null, ratio_to_parent: 1 },
    ]);
  return (
    <div className="fields">
      <div className="field">
        <label htmlFor={id}>Bound</label>
        <select id={id} className="input" value={kind} onChange={(event) => choose(event.target.value)}>
          <option value="none">none</option>
          <option value="ratio">ratio to the parent</option>
          <option value="ms">milliseconds</option>
        </select>
        <p className="field-hint">on the latency of the architecture</p>
      </div>
      {kind === "ratio" && (
        <NumberField
          pointer="/budget/latency/ratio_to_parent"
          label="At most"
          unit="× parent"
          hint="the parent alternates attention and FFN"
        />
      )}
      {kind === "ms" && <NumberField pointer="/budget/latency/ms" label="At most" unit="ms" />}
      <NumberField pointer="/task/serve/0/batch" label="Served batch" hint="sequences at once, when measured" />
      <NumberField pointer="/task/serve/0/query_length" label="Served length" hint="tokens of each" />
      {memory && (
        <NumberField pointer="/task/serve/0/memory_length" label="Served memory" hint="earlier tokens of each" />
      )}
      <Findings pointer="/budget/latency" />
    </div>
  );
}

function Baseline() {
  const { value, change } = useForm();
  const found = get(value, "/retrain/baselines");
  const on = Array.isArray(found) && found.includes("interleaved");
  return (
    <div className="field">
      <span className="field-label">Baseline</span>
      <label className="check">
        <input
          type="checkbox"
          checked={on}
          onChange={(event) => change(["/retrain/baselines", event.target.checked ? ["interleaved"] : []])}
        />
        interleaved parent
      </label>
      <p className="field-hint">trained beside, by the same recipe</p>
    </div>
  );
}
