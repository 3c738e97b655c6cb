/** The candidates of every slot: a line each, with the block's letter, its label and its options. */

import { lookOf } from "../blocks";
import { Button } from "../ui/Button";
import { useForm } from "./context";
import { Findings, NumberField } from "./Field";
import type { Json } from "./json";
import { get } from "./pointer";
import { defaultOptions, nullable, type BlockOptions, type Schema } from "./schema";

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
  const found = get(value, "/space/candidates");
  const candidates: Json[] = Array.isArray(found) ? found : [];
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
  const options = Object.entries((spec?.options as Schema | undefined)?.properties ?? {});
  const wrong = [`${pointer}`, `${pointer}/label`, `${pointer}/block`].flatMap((each) => findings.get(each) ?? []);
  return (
    <li>
      <BlockChip block={block} />
      <div className="candidate-name">
        <strong>{typeof label === "string" ? label : "?"}</strong>
        {label !== block && <span className="quieter"> {block}</span>}
        <p className="field-hint">{spec?.description ?? "no block of this service"}</p>
        {wrong.length > 0 && <p className="field-wrong">{wrong.join("; ")}</p>}
      </div>
      <div className="candidate-options">
        {options.map(([name, schema]) => (
          <NumberField
            key={name}
            pointer={`${pointer}/options/${name}`}
            label={name.replace("n_", "").replaceAll("_", " ")}
            hint=""
            whenEmpty={nullable(schema) ? null : ""}
            placeholder={nullable(schema) ? "auto" : undefined}
          />
        ))}
      </div>
      <Button kind="quiet" onClick={remove} aria-label={`remove ${String(label)}`} title={`remove ${String(label)}`}>
        ×
      </Button>
    </li>
  );
}

export function freeLabel(name: string, taken: string[]): string {
  for (let number = 1; ; number++) {
    const label = number === 1 ? name : `${name}-${number}`;
    if (!taken.includes(label)) return label;
  }
}
