/** What the seeds have in common, as a line with its evidence; and that line carried to another depth. */

import { memo, useMemo, useState } from "react";

import { api, get, Problem as Failure } from "../api/client";
import type { Rule } from "../api/types";
import type { Look } from "../blocks";
import { Button } from "../ui/Button";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { fixed } from "../ui/format";
import { Problem } from "../ui/Problem";
import { Strip } from "../ui/Strip";
import { counted, slotList } from "./model/format";
import { ratioRange, type Said } from "./model/rules";

interface Evidence {
  n_searches: number;
  n_seeds: number;
  n_slots: number;
  attention_slots: number[][];
  blocks: number[];
  ratio: number | null;
  undecided: number;
}

const WORDS: Record<string, string> = { supported: "better", suggested: "cannot tell", "not supported": "worse" };

interface Carried {
  slots: string[];
  statement: string;
}

export const RuleCard = memo(function RuleCard({
  rule,
  statements,
  seeds,
  look,
}: {
  rule: Rule;
  statements: readonly Rule[];
  seeds: readonly number[];
  look: (label: string) => Look;
}) {
  const evidence = rule.evidence as unknown as Evidence;
  const [depth, setDepth] = useState(() => String(Math.min(512, Math.max(evidence.n_slots * 2, 12))));
  const [carried, setCarried] = useState<Carried | null>(null);
  const [problem, setProblem] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const statement = useMemo(() => rule.statement.replace(/^[^:]*: ((suggested|not supported); )?/, ""), [rule.statement]);
  const apply = async () => {
    setProblem(null);
    setBusy(true);
    try {
      setCarried(
        await get(
          api.POST("/api/v1/rules/{rule_id}/apply", {
            params: { path: { rule_id: rule.id } },
            body: { n_slots: Number(depth), zone: "found", spacing: "uniform" },
          }),
        ),
      );
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setCarried(null);
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card
      title="Rule"
      className="rule-card"
      aside={
        <span
          className="verdict"
          data-word="cannot tell"
          title="it describes what was found; the statements below say what there is to it"
        >
          {rule.verdict}
        </span>
      }
    >
      <p className="rule-line">{statement}</p>
      <dl className="rule-evidence">
        {evidence.attention_slots.map((slots, index) => (
          <div key={index}>
            <dt>seed {seeds[index] ?? index}</dt>
            <dd>
              {slots.length ? `attention in ${slotList(slots)}` : "no attention"},{" "}
              {counted(evidence.blocks[index] ?? 0, "block")}
            </dd>
          </div>
        ))}
        {evidence.ratio !== null && (
          <div>
            <dt>all blocks : attention</dt>
            <dd>{fixed(evidence.ratio, 1)} : 1</dd>
          </div>
        )}
      </dl>
      {statements.length > 0 ? (
        <ul className="rule-statements">
          {statements.map((each) => {
            const said = each.evidence as unknown as Said;
            const range = ratioRange(said);
            return (
              <li key={each.id}>
                <span className="verdict" data-word={WORDS[said.verdict] ?? "cannot tell"}>
                  {said.verdict}
                </span>{" "}
                {said.statement}
                {range && `, ${range} over the seeds`}
                <p className="quieter">{said.reason}</p>
              </li>
            );
          })}
        </ul>
      ) : (
        <p className="quieter">
          {counted(evidence.n_searches, "search", "searches")} and {counted(evidence.n_seeds, "seed")} describe what was
          found here; that is no test of a rule.
        </p>
      )}
      <form
        className="row rule-apply"
        onSubmit={(event) => {
          event.preventDefault();
          void apply();
        }}
      >
        <label>
          The same at{" "}
          <input
            className="input"
            type="number"
            min={1}
            max={512}
            value={depth}
            onChange={(event) => setDepth(event.target.value)}
            required
          />{" "}
          slots
        </label>
        <Button type="submit" disabled={busy}>Lay out</Button>
      </form>
      {problem && <Problem problem={problem} />}
      {carried && (
        <div className="rule-carried">
          <Strip labels={carried.slots} look={look} title={`the rule at ${carried.slots.length} slots`} />
          <p className="quieter">{carried.statement}</p>
        </div>
      )}
      {evidence.ratio !== null && evidence.ratio >= 1 && (
        <details>
          <summary className="quiet">The paper's rule at this ratio</summary>
          <Command>{`blockwright rule --blocks ${Math.max(evidence.n_slots, 32)} --ratio ${Number(evidence.ratio.toFixed(1))}`}</Command>
        </details>
      )}
    </Card>
  );
});
