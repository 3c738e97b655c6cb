/** Amounts under each other: a name, a bar, a number, its share. */

import { count } from "../ui/format";
import { percent, type Bar } from "./card";

export function Bars({ bars, label, head }: { bars: readonly Bar[]; label: string; head: [string, string] }) {
  const most = Math.max(...bars.map((each) => each.n), 1);
  return (
    <table className="bars" aria-label={label}>
      <thead className="quieter">
        <tr>
          <th scope="col">{head[0]}</th>
          <th scope="col" className="bars-head" colSpan={3}>
            {head[1]}
          </th>
        </tr>
      </thead>
      <tbody>
        {bars.map(({ name, n, share }) => (
          <tr key={name}>
            <th scope="row">
              <bdi>{name}</bdi>
            </th>
            <td className="bars-bar" aria-hidden="true">
              <span style={{ width: `${(n / most) * 100}%` }} />
            </td>
            <td className="figure">{count(n)}</td>
            <td className="figure quieter">{percent(share)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
