/** What matters of a request, as fields; everything else stands in the JSON beside. */

import type { Dataset } from "../api/types";
import { Card } from "../ui/Card";
import { BudgetCard } from "./BudgetCard";
import { Candidates } from "./Candidates";
import { useForm } from "./context";
import { DataCard } from "./DataCard";
import { AnyField, Findings, NumberField, titled } from "./Field";
import { Fold } from "./Fold";
import type { Json } from "./json";
import { Layout } from "./Layout";
import { resized } from "./slotChoices";
import { get } from "./pointer";
import { resolved, wordsOf } from "./schema";
import { SearchCard } from "./SearchCard";
import { ServeCard } from "./ServeCard";

export function RequestForm({ datasets }: { datasets: Dataset[] }) {
  return (
    <>
      <DataCard datasets={datasets} />
      <Card title="Model">
        <div className="fields">
          <Slots />
          <NumberField pointer="/space/d_model" label="Width" hint="residual stream" />
          <NumberField pointer="/space/n_heads" label="Heads" hint={<HeadWidth />} />
          <Length />
        </div>
        <Findings pointer="/space" />
        <h3 className="form-heading">Candidates of each slot</h3>
        <Candidates />
        <Layout />
        <Backbone />
      </Card>
      <SearchCard />
      <BudgetCard />
      <ServeCard />
      <Card title="Retraining">
        <div className="fields">
          <NumberField pointer="/retrain/n_steps" label="Weight updates" hint="of each retraining" />
          <NumberField pointer="/retrain/n_seeds" label="Seeds" hint="shared by all architectures" />
          <Baselines />
        </div>
        <Findings pointer="/retrain/baselines" />
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
const ELSEWHERE = ["n_slots", "d_model", "n_heads", "candidates", "layout", "layout_prior", "backbone"];
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

/** A starting layout follows the number of slots. */
function Slots() {
  const { value, change } = useForm();
  return (
    <NumberField
      pointer="/space/n_slots"
      label="Slots"
      hint="one block each"
      onChange={(part) => change(["/space/n_slots", part], ...resized(value, part))}
    />
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

const BASELINES = [
  ["interleaved", "interleaved parent"],
  ["present", "the starting layout"],
] as const;

function Baselines() {
  const { value, change } = useForm();
  const found = get(value, "/retrain/baselines");
  const on = (Array.isArray(found) ? found : []).map(String);
  const write = (name: string, checked: boolean) =>
    change([
      "/retrain/baselines",
      BASELINES.flatMap(([each]) => ((each === name ? checked : on.includes(each)) ? [each] : [])),
    ]);
  return (
    <div className="field">
      <span className="field-label">Baselines</span>
      {BASELINES.map(([name, words]) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={on.includes(name)}
            onChange={(event) => write(name, event.target.checked)}
          />
          {words}
        </label>
      ))}
      <p className="field-hint">trained beside, by the same recipe</p>
    </div>
  );
}
