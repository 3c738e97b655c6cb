/** The settings that were tried, and which of them won by how much. */

import { fixed } from "../ui/format";
import { Table } from "../ui/Table";
import { pointersOf, type Sample, type Winner } from "./model/found";
import { figure } from "./model/metrics";

export function Samples({ samples, winner }: { samples: readonly Sample[]; winner: Winner | null }) {
  if (samples.length === 0) return null;
  const pointers = pointersOf(samples);
  const costs = samples.some((each) => each.cost !== null);
  return (
    <section className="result-part" aria-label="samples">
      <h3>Settings that were tried</h3>
      {winner && <p>{sentenceOf(winner.sentence)}</p>}
      <Table
        label="samples"
        head={
          <>
            <th>sample</th>
            {pointers.map((pointer) => (
              <th key={pointer} className="figure">
                {pointer.replace("/method/", "").replaceAll("_", " ")}
              </th>
            ))}
            <th className="figure">validation, nats</th>
            {costs && <th className="figure">cost</th>}
            <th>came to</th>
          </>
        }
      >
        {samples.map(({ sample, values, state, reason, loss, sd, cost }) => (
          <tr key={sample} data-won={sample === winner?.sample}>
            <td>{sample}</td>
            {pointers.map((pointer) => (
              <td key={pointer} className="figure">
                {values[pointer] === undefined ? "–" : Number(values[pointer].toPrecision(3))}
              </td>
            ))}
            <td className="figure">
              {fixed(loss, 4)}
              {sd !== null && <span className="quieter"> ± {fixed(sd, 4)}</span>}
            </td>
            {costs && <td className="figure">{figure(cost)}</td>}
            <td className="result-why">
              {state}
              {reason && `: ${reason}`}
              {sample === winner?.sample && " (won)"}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

const sentenceOf = (words: string) => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
