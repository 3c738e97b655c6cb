/** Derived and parent on the test part at other lengths than they learnt; where one cannot run, why. */

import { count, fixed, signed } from "../ui/format";
import { Table } from "../ui/Table";
import { Interval, Verdict } from "./Interval";
import { type AtLength, type Score, timesTrained } from "./model/found";
import { decimals } from "./model/format";

interface Props {
  lengths: readonly AtLength[];
  trained: number | null;
  /** What the derived model is held against, in words. */
  other: string;
}

export function Lengths({ lengths, trained, other }: Props) {
  const [first] = lengths;
  if (!first) return null;
  const compared = lengths.some((each) => each.parent);
  return (
    <section className="result-part" aria-label="lengths">
      <h3>
        At other lengths <span className="unit">{first.unit}, on the test part</span>
      </h3>
      <Table
        label="quality at each length"
        head={
          <>
            <th>tokens</th>
            <th className="figure">derived</th>
            {compared && (
              <>
                <th className="figure">{other}</th>
                <th className="figure">difference</th>
                <th>95% interval</th>
                <th>so it is</th>
              </>
            )}
          </>
        }
      >
        {lengths.map(({ length, derived, parent, difference }) => {
          const digits = difference ? decimals(difference.bits, difference.low, difference.high) : 3;
          return (
            <tr key={length}>
              <td>
                {count(length)} <span className="quieter">{timesTrained(length, trained)}</span>
              </td>
              <ScoreCell score={derived} strong />
              {compared && (
                <>
                  <ScoreCell score={parent} />
                  <td className="figure">{difference ? signed(difference.bits, digits) : "–"}</td>
                  <td>
                    {difference && (
                      <Interval
                        at={difference.bits}
                        low={difference.low}
                        high={difference.high}
                        reference={0}
                        name={other}
                        words={`${signed(difference.low, digits)} to ${signed(difference.high, digits)}`}
                      />
                    )}
                  </td>
                  <td>{difference && <Verdict word={difference.verdict} />}</td>
                </>
              )}
            </tr>
          );
        })}
      </Table>
    </section>
  );
}

function ScoreCell({ score, strong = false }: { score: Score | null; strong?: boolean }) {
  if (!score) return <td className="figure">–</td>;
  if (score.bits === null) return <td className="result-why">none: {score.why ?? "it was not scored"}</td>;
  return (
    <td className="figure">
      {strong ? <b>{fixed(score.bits, 3)}</b> : fixed(score.bits, 3)}
      {score.se !== null && <span className="quieter"> ± {fixed(score.se, 3)}</span>}
    </td>
  );
}
