/** Name, data, what is predicted of them, and how text becomes tokens; choosing one sets what must go with it. */

import type { Dataset } from "../api/types";
import { KIND_WORDS } from "../datasets/card";
import { Link } from "../router";
import { Card } from "../ui/Card";
import { bytes } from "../ui/format";
import { useForm } from "./context";
import { knowsPositions, objectivesFor, taskOf, tokenizersFor, withDataset, withObjective, withTokenizer } from "./data";
import { AnyField, ChoiceField, Findings, NumberField, TextField, titled, type ChoiceOption } from "./Field";
import { get } from "./pointer";
import { wordsOf, type Schema } from "./schema";

export function DataCard({ datasets }: { datasets: Dataset[] }) {
  const { catalog, value, change } = useForm();
  const task = taskOf(catalog, value);
  const dataset = datasets.find((each) => each.name === get(value, "/task/dataset"));
  return (
    <Card title="Name and data">
      <div className="fields">
        <TextField pointer="/name" label="Name" hint="how the list shows it" />
        <ChoiceField
          pointer="/task/dataset"
          label="Dataset"
          wide
          choices={choices(datasets, catalog.tasks)}
          hint={
            task ? (
              <>
                {task.description}. <Link href={`/datasets/${task.name}`}>More of it</Link>
              </>
            ) : (
              <>
                What the models learn. <Link href="/datasets">Upload one of yours</Link>
              </>
            )
          }
          onChange={(name) => change(...withDataset(catalog, datasets, value, String(name)))}
        />
        <ChoiceField
          pointer="/task/objective"
          label="Predicts"
          hint=""
          wide
          choices={objectivesFor(task, dataset, get(value, "/task/objective"))}
          onChange={(objective) => change(...withObjective(value, String(objective), task))}
        />
        {!task && <TokenizerFields datasets={datasets} dataset={dataset} />}
      </div>
      {task && <TaskOptions options={task.options as Schema} planted={task.description.startsWith("planted")} />}
      <Findings pointer="/task" />
      <Findings pointer="/task/dataset_options" />
    </Card>
  );
}

function choices(datasets: Dataset[], tasks: { name: string }[]): ChoiceOption[] {
  const kept = datasets.filter(({ kind }) => kind !== "tokenizer" && kind !== "synthetic");
  const own = kept.filter((each) => !each.built_in);
  const words = ({ name, kind, n_bytes }: Dataset) => {
    const notes = [KIND_WORDS[kind], ...(n_bytes === null ? [] : [bytes(n_bytes)])];
    return `${name} (${notes.join(", ")})`;
  };
  return [
    ...own.map((each) => ({ value: each.name, words: words(each), group: "yours" })),
    ...kept.filter((each) => each.built_in).map((each) => ({ value: each.name, words: words(each), group: "built in" })),
    ...tasks.map(({ name }) => ({ value: name, words: name, group: "synthetic tasks" })),
  ];
}

function TokenizerFields({ datasets, dataset }: { datasets: Dataset[]; dataset: Dataset | undefined }) {
  const { catalog, value, change } = useForm();
  const uploaded = datasets.filter((each) => each.kind === "tokenizer").map((each) => each.name);
  const type = get(value, "/task/tokenizer/type");
  const types = tokenizersFor(catalog, dataset, type);
  return (
    <>
      <ChoiceField
        pointer="/task/tokenizer/type"
        label="Tokens"
        wide
        choices={types.map((each) => ({ value: each.type, words: each.type === "file" ? "tokenizer.json" : each.type }))}
        hint={types.find((each) => each.type === type)?.description}
        onChange={(chosen) => change(...withTokenizer(String(chosen), uploaded))}
      />
      {(type === "words" || type === "bpe") && (
        <NumberField
          pointer="/task/tokenizer/vocab_size"
          label="Vocabulary"
          hint="entries, at most"
          empty={type === "bpe" ? "8192" : "all words"}
        />
      )}
      {type === "words" && (
        <NumberField pointer="/task/tokenizer/min_count" label="Seen at least" unit="times" hint="seldomer is <unk>" />
      )}
      {type === "file" && (
        <ChoiceField
          pointer="/task/tokenizer/name"
          label="Which tokenizer"
          wide
          choices={uploaded.map((name) => ({ value: name, words: name }))}
          hint={
            uploaded.length === 0 ? (
              <>
                None is here yet. <Link href="/datasets">Upload a tokenizer.json</Link>
              </>
            ) : (
              "one of yours"
            )
          }
        />
      )}
      <Findings pointer="/task/tokenizer" />
    </>
  );
}

/** As the options of a block: a field for whatever the schema says. */
function TaskOptions({ options, planted }: { options: Schema; planted: boolean }) {
  const { value, change } = useForm();
  const names = Object.entries(options.properties ?? {});
  return (
    <>
      {names.length > 0 && <h3 className="form-heading">Options of the task</h3>}
      <div className="fields fields-told">
        {names.map(([name, schema]) => (
          <AnyField
            key={name}
            pointer={`/task/dataset_options/${name}`}
            own={schema}
            label={titled(name)}
            hint={schema.description ?? wordsOf(options, name)}
          />
        ))}
      </div>
      {planted && knowsPositions(value) && (
        <p className="field-hint data-positions">
          Planted tasks tell blocks apart only where nothing else knows positions.{" "}
          <button
            type="button"
            className="link"
            onClick={() => change(["/space/positions", "none"], ["/space/backbone/position_embedding", "none"])}
          >
            Set positions to none
          </button>
        </p>
      )}
    </>
  );
}
