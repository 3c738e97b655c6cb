/** One block a slot, on the slot axis: a strip with its name in the gutter. */

import { memo } from "react";

import type { Look } from "../blocks";
import { BlankStrip, Strip } from "../ui/Strip";

export interface StripRow {
  key: string;
  name: string;
  title: string;
  /** null: not derived yet. */
  labels: readonly string[] | null;
  undecided: readonly number[];
  strong?: boolean;
}

export const SlotRow = memo(function SlotRow({
  name,
  title,
  labels,
  undecided,
  look,
  strong = false,
  slots,
}: Omit<StripRow, "key"> & { slots: number; look: (label: string) => Look }) {
  return (
    <div className="picture-row slot-row">
      <div className={`gutter ${strong ? "gutter-strong" : ""}`} title={title}>
        {name}
      </div>
      {labels ? (
        <Strip labels={labels} undecided={undecided} look={look} fill title={title} />
      ) : (
        <BlankStrip n={slots} fill />
      )}
    </div>
  );
}, sameRow);

/** Rows are made anew at each report; most say the same as before. */
function sameRow(one: Parameters<typeof rowKey>[0], other: Parameters<typeof rowKey>[0]): boolean {
  return one.look === other.look && rowKey(one) === rowKey(other);
}
const rowKey = (row: {
  name: string;
  title: string;
  labels: readonly string[] | null;
  undecided: readonly number[];
  strong?: boolean;
  look: unknown;
}) => `${row.name}|${row.title}|${row.labels?.join()}|${row.undecided.join()}|${row.strong}`;
