/** What will happen, what stands against it, and the button. */

import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Problem } from "../ui/Problem";
import type { Finding } from "./checks";
import type { Draft } from "./draft";
import { plan } from "./plan";
import { same } from "./pointer";
import type { Submission } from "./useSubmit";

export function Plan({
  draft,
  found,
  submission,
  reveal,
  submit,
}: {
  draft: Draft;
  found: Finding[];
  submission: Submission;
  reveal: (pointer: string) => void;
  submit: () => void;
}) {
  const { refusal, sending } = submission;
  return (
    <Card title="What will happen" className="plan">
      {plan(draft.value).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {found.length > 0 && !draft.error && (
        <ul className="plan-wrong" aria-label="what is wrong">
          {found.map(({ pointer, detail }, at) => (
            <li key={at}>
              <button type="button" className="link" onClick={() => reveal(pointer)}>
                {pointer || "request"}
              </button>{" "}
              {detail}
            </li>
          ))}
        </ul>
      )}
      {refusal && refusal.problem.errors.length === 0 && same(refusal.value, draft.value) && (
        <Problem problem={refusal.problem} title="Not queued" />
      )}
      <Button kind="primary" disabled={sending || draft.error !== null} onClick={submit}>
        {sending ? "Starting …" : "Start the search"}
      </Button>
    </Card>
  );
}
