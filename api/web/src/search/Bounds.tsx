/** Each bound of the budget: what it allows, what was predicted, expected and measured, and whether it holds. */

import { Table } from "../ui/Table";
import { Interval, Verdict } from "./Interval";
import { type Kept } from "./model/found";
import { figure } from "./model/metrics";

const NAMES: Record<string, string> = { flops: "operations", cache_bytes: "cache" };

export function Bounds({ bounds }: { bounds: readonly Kept[] }) {
  if (bounds.length === 0) return null;
  return (
    <section className="result-part" aria-label="budget">
      <h3>Budget</h3>
      <Table
        label="bounds of the budget"
        head={
          <>
            <th>bound</th>
            <th className="figure">at most</th>
            <th className="figure" title="mean of paths drawn from the probabilities, where the search ended">
              expected
            </th>
            <th className="figure" title="of the derived architecture, by the latency table or by formula">
              predicted
            </th>
            <th className="figure">measured</th>
            <th>95% interval</th>
            <th>so it is</th>
          </>
        }
      >
        {bounds.map(({ name, unit, target, expected, predicted, measured, low, high, verdict }) => (
          <tr key={name}>
            <td>
              {NAMES[name] ?? name} <span className="quieter">{unit}</span>
            </td>
            <td className="figure">{figure(target)}</td>
            <td className="figure">{figure(expected)}</td>
            <td className="figure">{figure(predicted)}</td>
            <td className="figure">{measured === null ? "–" : <b>{figure(measured)}</b>}</td>
            <td>
              {measured !== null && low !== null && high !== null ? (
                <Interval
                  at={measured}
                  low={low}
                  high={high}
                  reference={target}
                  name="bound"
                  words={`${figure(low)} to ${figure(high)}`}
                />
              ) : (
                <span className="quieter">{name === "latency" ? "not timed" : "counted"}</span>
              )}
            </td>
            <td>
              <Verdict word={verdict} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
