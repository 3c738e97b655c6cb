/** The first rows, as text and nothing else. */

import type { Card as Known } from "../api/types";
import { Card } from "../ui/Card";
import { samplesOf, type Sample } from "./card";

export function Samples({ card }: { card: Known }) {
  const samples = samplesOf(card);
  if (samples.length === 0) return null;
  return (
    <Card title="First rows" aside={<span className="quieter">long ones are cut</span>}>
      <ol className="samples" aria-label="first rows">
        {samples.map((sample, at) => (
          <li key={at}>
            <Row sample={sample} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Row({ sample: { text, pair, label, words, labels, part } }: { sample: Sample }) {
  return (
    <>
      {text !== undefined && <Words text={text} />}
      {pair !== undefined && <Words text={pair} />}
      {words !== undefined && (
        <p className="sample-words">
          {words.map((word, at) => (
            <span key={at}>
              <bdi>{word}</bdi>
              <span className="quieter">{labels?.[at] ?? ""}</span>
            </span>
          ))}
        </p>
      )}
      {(label !== undefined || part !== undefined) && (
        <p className="sample-notes quieter">
          {label !== undefined && (
            <span>
              label <b dir="auto">{String(label)}</b>
            </span>
          )}
          {part !== undefined && <span>given as {part}</span>}
        </p>
      )}
    </>
  );
}

/** `dir` keeps a text's own direction, and what turns it, inside. */
function Words({ text }: { text: string }) {
  return (
    <pre className="sample" dir="auto">
      {text}
    </pre>
  );
}
