/** A synthetic task: its rule, the best score there is, and what can be set. */

import type { SyntheticTask } from "../api/types";
import { titled } from "../new/Field";
import { nullable, resolved, wordsOf, type Schema } from "../new/schema";
import { Card } from "../ui/Card";
import { count, fixed } from "../ui/format";
import { Table } from "../ui/Table";
import { DatasetHead } from "./DatasetPage";
import { OBJECTIVE_WORDS, Use } from "./DatasetsPage";

export function TaskView({ task }: { task: SyntheticTask }) {
  const { name, description, objective, causal, best_accuracy, best_why, source } = task;
  const options = task.options as Schema;
  const sees = causal === null ? "either" : causal ? "earlier tokens (decoder)" : "all tokens (encoder)";
  return (
    <div className="stack">
      <DatasetHead name={name} kind="synthetic task">
        <Use name={name} kind="synthetic" primary />
      </DatasetHead>
      <p className="quiet">{description}</p>
      <Card title="What it asks">
        <dl className="facts-list">
          <dt>answers</dt>
          <dd>{OBJECTIVE_WORDS[objective] ?? objective}</dd>
          <dt>each token sees</dt>
          <dd>{sees}</dd>
          <dt>best accuracy</dt>
          <dd>
            <b>{fixed(best_accuracy, 3)}</b> <span className="quiet">with default options: {best_why}</span>
          </dd>
          <dt>source</dt>
          <dd>{source}</dd>
        </dl>
      </Card>
      <Card title="Options" aside={<span className="quieter">set in a new search</span>}>
        <Table
          label={`options of ${name}`}
          head={
            <>
              <th>option</th>
              <th className="figure">default</th>
              <th>may be</th>
              <th>meaning</th>
            </>
          }
        >
          {Object.entries(options.properties ?? {}).map(([option, schema]) => (
            <tr key={option}>
              <td>
                <span title={option}>{titled(option)}</span>
              </td>
              <td className="figure">{valueWords(schema.default)}</td>
              <td>{mayBe(options, schema)}</td>
              <td className="quiet">{schema.description ?? wordsOf(options, option)}</td>
            </tr>
          ))}
        </Table>
      </Card>
    </div>
  );
}

function valueWords(value: Schema["default"]): string {
  return value === null || value === undefined ? "auto" : typeof value === "number" ? shown(value) : String(value);
}

/** "2 to 4,096", "yes or no", "small, large". */
function mayBe(root: Schema, schema: Schema): string {
  const here = resolved(root, schema);
  const none = nullable(schema) ? ", or auto" : "";
  if (here.enum) return here.enum.join(", ") + none;
  if (here.type === "boolean") return "yes or no";
  const { minimum, maximum } = here;
  if (minimum === undefined || maximum === undefined) return (here.type ?? "") + none;
  return `${shown(minimum)} to ${shown(maximum)}${none}`;
}

const shown = (value: number) => (Number.isInteger(value) ? count(value) : String(value));
