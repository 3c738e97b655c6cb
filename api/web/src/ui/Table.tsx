import type { ReactNode } from "react";

/** A table that scrolls within its frame on a narrow screen; cells with figures take the class `figure`. */
export function Table({ head, children, label }: { head: ReactNode; children: ReactNode; label: string }) {
  return (
    <div className="table-frame">
      <table className="table" aria-label={label}>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
