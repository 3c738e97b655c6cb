/** Which colour and letter mean which block. */

import { lookOf } from "../blocks";
import type { Catalog } from "../api/types";

export function Legend({ catalog }: { catalog: Catalog | undefined }) {
  return (
    <ul className="legend" aria-label="blocks">
      {catalog?.blocks.map(({ name, description }) => {
        const { letter, colour, ink } = lookOf(catalog, name);
        return (
          <li key={name} title={description}>
            <span
              className="strip-slot"
              style={{ "--colour": colour, "--on": ink } as React.CSSProperties}
              aria-hidden="true"
            >
              <span>{letter}</span>
            </span>
            {name}
          </li>
        );
      })}
      {catalog && (
        <li title="what leads there leads no further than chance would">
          <span className="strip-slot strip-open" aria-hidden="true">
            <span>?</span>
          </span>
          undecided
        </li>
      )}
    </ul>
  );
}
