/** What the guards of the search trials have found, in words, each at its step: a press shows that step. */

import { memo, useMemo } from "react";

import type { Trial } from "../api/types";
import { Card } from "../ui/Card";
import { count } from "../ui/format";
import { type Finding, findingsOf } from "./model/findings";
import { hasEnded, type Live } from "./model/live";

interface Props {
  live: Live;
  version: number;
  trials: readonly Trial[];
  onFound: (found: Finding) => void;
}

export const Guards = memo(function Guards({ live, version, trials, onFound }: Props) {
  const findings = useMemo(() => findingsOf(live, trials), [live, version, trials.map((each) => each.id).join()]);
  return (
    <Card className="guards" title="Guards" aside={<span className="quiet">{findings.length || ""}</span>}>
      <ul aria-label="what the guards have found" tabIndex={0}>
        {findings.map((each) => (
          <li key={`${each.trial}-${each.step}-${each.words}`}>
            <button type="button" className="link" onClick={() => onFound(each)}>
              step {count(each.step)}, seed {each.seed}
            </button>{" "}
            {each.words}
          </li>
        ))}
        {findings.length === 0 && (
          <li className="quiet">
            {hasEnded(live.search.state)
              ? "They found nothing to warn of."
              : "Nothing to warn of so far: they watch for collapse to identity, for probabilities that stand still, and for losses that part."}
          </li>
        )}
      </ul>
    </Card>
  );
});
