/** The whole request as JSON, and whether it is any. */

import type { Ref } from "react";

import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import type { Change, Draft } from "./draft";
import { type Editor, JsonEditor } from "./JsonEditor";

export function RequestText({
  draft,
  tell,
  marks,
  editor,
  show,
}: {
  draft: Draft;
  tell: (change: Change) => void;
  marks: Map<number, string[]>;
  editor: Ref<Editor>;
  show: (line: number) => void;
}) {
  const { error, text } = draft;
  return (
    <Card
      title="Request"
      className="request"
      aside={
        <Button
          kind="quiet"
          onClick={() => tell({ type: "formatted" })}
          title={error ? "back to the last request that was valid" : "one field a line, defaults written out"}
        >
          {error ? "restore" : "format"}
        </Button>
      }
    >
      <p id="json-status" role="status" className={error ? "json-status field-wrong" : "json-status quieter"}>
        {error ? (
          <>
            <button type="button" className="link" onClick={() => show(error.place.line)}>
              line {error.place.line}, column {error.place.column}
            </button>
            : {error.message}
          </>
        ) : (
          "The whole request; the form follows it, and it follows the form."
        )}
      </p>
      <JsonEditor
        ref={editor}
        text={text}
        onText={(typed) => tell({ type: "typed", text: typed })}
        marks={marks}
        describedBy="json-status"
      />
    </Card>
  );
}
