/** Small parts of this page: one choice of few, and a block's letter in its family's colour. */

import type { CSSProperties, ReactNode } from "react";

import type { Look } from "../blocks";

export interface Option<T> {
  value: T;
  words: ReactNode;
  disabled?: boolean;
  title?: string;
}

/** One of few, as buttons beside each other. */
export function Choice<T extends string | number>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly Option<T>[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    <div className="choice" role="group" aria-label={label}>
      {options.map((each) => (
        <button
          key={each.value}
          type="button"
          aria-pressed={each.value === value}
          disabled={each.disabled}
          title={each.title}
          onClick={() => onChange(each.value)}
        >
          {each.words}
        </button>
      ))}
    </div>
  );
}

export function Chip({ look }: { look: Look }) {
  return (
    <span className="chip" style={{ "--colour": look.colour, "--on": look.ink } as CSSProperties} aria-hidden="true">
      {look.letter}
    </span>
  );
}
