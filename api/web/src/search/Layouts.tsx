/** What was retrained: each network against the derived one, and what the rules were confirmed by against their layout. */

import type { Look } from "../blocks";
import { fixed, signed } from "../ui/format";
import { Strip } from "../ui/Strip";
import { Table } from "../ui/Table";
import { Interval, Verdict } from "./Interval";
import type { Compared, Layout } from "./model/found";
import { counted, decimals } from "./model/format";

interface Props {
  layouts: readonly Layout[];
  comparisons: readonly Compared[];
  /** What the comparisons could show, as it was told before they ran. */
  power: readonly string[];
  look: (label: string) => Look;
}

export function Layouts({ layouts, comparisons, power, look }: Props) {
  const [any] = comparisons;
  if (!any) return null;
  const firsts = [...new Set(comparisons.map((each) => each.first))];
  return (
    <section className="result-part" aria-label="layouts">
      <h3>
        Against each layout <span className="unit">{any.unit}, on the test part; no correction for their number</span>
      </h3>
      {firsts.map((first) => {
        const against = new Map(comparisons.filter((each) => each.first === first).map((each) => [each.second, each]));
        const rows = layouts.filter(({ name }) => name === first || against.has(name));
        const called = first === "rule" ? "the rule's layout" : first;
        return (
          <Table
            key={first}
            label={`${called} against every other`}
            head={
              <>
                <th>layout</th>
                <th>slots</th>
                <th className="figure">it has</th>
                <th className="figure">{called} minus it</th>
                <th>95% interval</th>
                <th>so {called} is</th>
                <th className="figure">in latency</th>
              </>
            }
          >
            {rows.map((layout) => (
              <Row key={layout.name} layout={layout} found={against.get(layout.name)} look={look} />
            ))}
          </Table>
        );
      })}
      {power.map((line) => (
        <p className="quieter" key={line}>
          Told before it ran: {line}.
        </p>
      ))}
    </section>
  );
}

function Row({ layout, found, look }: { layout: Layout; found: Compared | undefined; look: Props["look"] }) {
  const digits = found ? decimals(found.difference, found.low, found.high) : 3;
  return (
    <tr>
      <td>
        {layout.name} <span className="quieter">{counted(layout.seeds.length, "seed")}</span>
      </td>
      <td>
        <Strip labels={layout.slots} look={look} size="small" title={layout.name} />
      </td>
      <td className="figure">{fixed(layout.mean, 3)}</td>
      <td className="figure">{found ? signed(found.difference, digits) : "–"}</td>
      <td>
        {found && (
          <Interval
            at={found.difference}
            low={found.low}
            high={found.high}
            reference={0}
            name={layout.name}
            words={`${signed(found.low, digits)} to ${signed(found.high, digits)}`}
          />
        )}
      </td>
      <td>
        {found && <Verdict word={found.verdict} />} <span className="quieter">{found && doubt(found)}</span>
      </td>
      <td className="figure">{found?.latency ? `${fixed(found.latency.ratio, 3)} of its` : "–"}</td>
    </tr>
  );
}

/** What a verdict of a few seeds cannot say. */
function doubt({ verdict, n_seeds, detectable }: Compared): string {
  if (n_seeds === 1) return "one seed: the interval is of the windows alone";
  if (verdict !== "cannot tell" || detectable === null) return "";
  return `${fixed(detectable, decimals(detectable))} or more would be seen 8 times in 10`;
}
