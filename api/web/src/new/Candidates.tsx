/** The candidates of every slot: a line each, with the block's letter, its label and its options. */

import { lookOf } from "../blocks";
import { Button } from "../ui/Button";
import { useForm } from "./context";
import { AnyField, Findings, titled, TextField } from "./Field";
import { Fold } from "./Fold";
import type { Json } from "./json";
import { differences, following, freeLabel } from "./labels";
import { get } from "./pointer";
import { defaultOptions, type BlockOptions, wordsOf } from "./schema";

export function BlockChip({ block }: { block: string }) {
  const { catalog } = useForm();
  const { letter, colour, ink } = lookOf(catalog, block);
  return (
    <span className="block-chip" style={{ background: colour, color: ink }} aria-hidden="true">
      {letter}
    </span>
  );
}

export function Candidates() {
  const { catalog, value, change } = useForm();
  const candidates = list(get(value, "/space/candidates"));
  const labels = candidates.map((each) => String(get(each, "/label") ?? ""));
  const write = (changed: Json[]) => change(["/space/candidates", changed]);
  const add = (block: BlockOptions) =>
    write([...candidates, { label: freeLabel(block.name, labels), block: block.name, options: defaultOptions(block) }]);
  const missing = catalog.blocks.filter((block) => !candidates.some((each) => get(each, "/block") === block.name));
  const present = catalog.blocks.filter((block) => !missing.includes(block));

  return (
    <div className="candidates">
      <ul aria-label="candidates">
        {candidates.map((candidate, at) => (
          <Candidate
            key={at}
            at={at}
            candidate={candidate}
            remove={() => write(candidates.filter((_, other) => other !== at))}
          />
        ))}
      </ul>
      <Findings pointer="/space/candidates" />
      <div className="row candidates-add">
        {missing.map((block) => (
          <Button key={block.name} onClick={() => add(block as unknown as BlockOptions)} title={block.description}>
            <BlockChip block={block.name} /> add {block.name}
          </Button>
        ))}
        <label className="quieter row">
          add one more
          <select
            className="input"
            value=""
            onChange={(event) => {
              const block = catalog.blocks.find((each) => each.name === event.target.value);
              if (block) add(block as unknown as BlockOptions);
            }}
          >
            <option value="">of …</option>
            {present.map((block) => (
              <option key={block.name} value={block.name}>
                {block.name}
              </option>
            ))}
          </select>
        </label>
      </div>
    </div>
  );
}

function Candidate({ at, candidate, remove }: { at: number; candidate: Json; remove: () => void }) {
  const { catalog, findings } = useForm();
  const pointer = `/space/candidates/${at}`;
  const block = String(get(candidate, "/block") ?? "");
  const label = get(candidate, "/label");
  const spec = catalog.blocks.find((each) => each.name === block);
  const wrong = [pointer, `${pointer}/block`].flatMap((each) => findings.get(each) ?? []);
  return (
    <li>
      <BlockChip block={block} />
      <div className="candidate-name">
        <strong>{typeof label === "string" ? label : "?"}</strong>
        {label !== block && <span className="quieter"> {block}</span>}
        <p className="field-hint">{spec?.description ?? "no block of this service"}</p>
        {wrong.length > 0 && <p className="field-wrong">{wrong.join("; ")}</p>}
      </div>
      <Button kind="quiet" onClick={remove} aria-label={`remove ${String(label)}`} title={`remove ${String(label)}`}>
        ×
      </Button>
      {spec && <Options at={at} candidate={candidate} block={spec as unknown as BlockOptions} />}
    </li>
  );
}

/** Label and options of a candidate, folded: a line says what differs from the block's defaults. */
function Options({ at, candidate, block }: { at: number; candidate: Json; block: BlockOptions }) {
  const { value, change } = useForm();
  const pointer = `/space/candidates/${at}`;
  const label = String(get(candidate, "/label") ?? "");
  const found = get(candidate, "/options");
  const options = found !== null && typeof found === "object" && !Array.isArray(found) ? found : {};
  const known = Object.entries(block.options.properties ?? {});
  const plain = known.length > 0 ? "options at their defaults" : "no options";
  const others = list(get(value, "/space/candidates")).filter((_, other) => other !== at);
  const taken = others.map((each) => String(get(each, "/label") ?? ""));
  const write = (name: string, part: Json) => {
    const after = following(block, label, options, { ...options, [name]: part }, taken);
    const renamed: [string, Json][] = after === label ? [] : [[`${pointer}/label`, after]];
    change([`${pointer}/options/${name}`, part], ...renamed);
  };
  return (
    <Fold
      className="candidate-more"
      summary={differences(block, options).join(", ") || <span className="quieter">{plain}</span>}
      parts={[`${pointer}/label`, `${pointer}/options`]}
    >
      <div className="fields">
        <TextField pointer={`${pointer}/label`} label="Label" hint="how architectures and tables name it" />
        {known.map(([name, schema]) => (
          <AnyField
            key={name}
            pointer={`${pointer}/options/${name}`}
            own={schema}
            label={titled(name)}
            hint={schema.description ?? wordsOf(block.options, name)}
            onChange={(part) => write(name, part)}
          />
        ))}
      </div>
    </Fold>
  );
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
