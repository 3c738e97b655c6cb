/**
 * The request as text, with line numbers, colours and marked lines.
 *
 * A text area whose letters are transparent lies over the coloured text; both share one font and one scrolling frame, so
 * that the browser does the editing.
 */

import { type ReactNode, useImperativeHandle, useMemo, useRef, type Ref } from "react";

export interface Editor {
  /** Put the cursor at the beginning of a line, counted from 1. */
  show: (line: number) => void;
}

export function JsonEditor({
  text,
  onText,
  marks,
  describedBy,
  ref,
}: {
  text: string;
  onText: (text: string) => void;
  /** What is wrong, by line. */
  marks: Map<number, string[]>;
  describedBy: string;
  ref: Ref<Editor>;
}) {
  const area = useRef<HTMLTextAreaElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => text.split("\n"), [text]);
  useImperativeHandle(ref, () => ({
    show: (line) => {
      const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
      area.current?.focus({ preventScroll: true });
      area.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
      const row = frame.current?.querySelectorAll(".json-line")[line - 1];
      row?.scrollIntoView({ block: "center" });
    },
  }));
  return (
    <div className="json" ref={frame}>
      <pre aria-hidden="true">
        {lines.map((line, at) => (
          <div key={at} className={marks.has(at + 1) ? "json-line json-wrong" : "json-line"}>
            {coloured(line)}
          </div>
        ))}
      </pre>
      <textarea
        ref={area}
        value={text}
        rows={lines.length}
        wrap="off"
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        autoCorrect="off"
        aria-label="request as JSON"
        aria-describedby={describedBy}
        aria-invalid={marks.size > 0}
        onChange={(event) => onText(event.target.value)}
      />
    </div>
  );
}

const TOKEN = /("(?:\\.|[^"\\])*"?)(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

function coloured(line: string): ReactNode[] {
  const found: ReactNode[] = [];
  let end = 0;
  for (const match of line.matchAll(TOKEN)) {
    found.push(line.slice(end, match.index));
    const [whole, text, colon] = match;
    const kind = text === undefined ? "json-number" : colon === undefined ? "json-text" : "json-name";
    found.push(
      <span key={match.index} className={kind}>
        {whole}
      </span>,
    );
    end = match.index + whole.length;
  }
  found.push(line.slice(end) || "\u200b"); // an empty line has the height of one
  return found;
}
