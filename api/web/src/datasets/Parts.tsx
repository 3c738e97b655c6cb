/** The four parts as one bar, and what each is for. */

import type { Card as Known } from "../api/types";
import { Card } from "../ui/Card";
import { bytes, count } from "../ui/format";
import { PART_USE, partsOf, percent } from "./card";

export function Parts({ card }: { card: Known }) {
  const found = partsOf(card);
  if (found === null) return null;
  const { unit, given, parts } = found;
  return (
    <Card title="Parts" aside={<span className="quieter">{given ? "as the data give them" : "72, 18, 5 and 5%"}</span>}>
      <div className="parts-bar" aria-hidden="true">
        {parts.map(({ name, share }) => (
          <span key={name} className={`part-${name}`} style={{ flexGrow: share }} />
        ))}
      </div>
      <table className="parts-table">
        <tbody>
          {parts.map(({ name, n, share }) => (
            <tr key={name}>
              <th scope="row">
                <span className={`part-key part-${name}`} aria-hidden="true" />
                {name}
              </th>
              <td className="quieter part-use">{PART_USE[name]}</td>
              <td className="figure" title={`${count(n)} ${unit}`}>
                {unit === "bytes" ? bytes(n) : `${count(n)} ${n === 1 ? unit.slice(0, -1) : unit}`}
              </td>
              <td className="figure quieter">{percent(share)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {card.n_duplicates > 0 && (
        <p className="quieter">
          {count(card.n_duplicates)} documents stand exactly so before; equal ones share a part.
        </p>
      )}
      {card.n_left_out > 0 && (
        <p className="quieter">
          {count(card.n_left_out)} documents also stand in a later given part (train, validation, test): left out.
        </p>
      )}
    </Card>
  );
}
