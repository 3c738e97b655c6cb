/** A verdict in words and colour, and the interval that it rests on. */

import { MEANING, spanOf, type Word } from "./model/verdict";

/** A word of a newer service, which this page does not know, is shown as it is. */
export function Verdict({ word }: { word: string }) {
  return (
    <span className="verdict" data-word={word} title={word in MEANING ? MEANING[word as Word] : undefined}>
      {word}
    </span>
  );
}

const WIDTH = 190;
const HEIGHT = 20;
const LABEL = 12;

/** The interval, its middle and the reference: which side it lies on is the verdict. */
export function Interval({
  at,
  low,
  high,
  reference,
  repeatability = 0,
  name = "parent",
  words,
}: {
  at: number;
  low: number;
  high: number;
  reference: number;
  repeatability?: number;
  /** What the reference is. */
  name?: string;
  words: string;
}) {
  const [from, to] = spanOf([low, high, at, reference - repeatability, reference + repeatability]);
  const written = Number(reference.toPrecision(4));
  const x = (value: number) => ((value - from) / (to - from)) * WIDTH;
  return (
    <span className="interval">
      <svg width={WIDTH} height={HEIGHT + LABEL} role="img" aria-label={`${words}; the ${name} is at ${written}`}>
        {repeatability > 0 && (
          <rect
            className="interval-repeat"
            x={x(reference - repeatability)}
            width={x(reference + repeatability) - x(reference - repeatability)}
            y="2"
            height={HEIGHT - 4}
          />
        )}
        <line className="interval-reference" x1={x(reference)} x2={x(reference)} y1="1" y2={HEIGHT - 1} />
        <line className="interval-whole" x1={x(low)} x2={x(high)} y1={HEIGHT / 2} y2={HEIGHT / 2} />
        <line className="interval-whole" x1={x(low)} x2={x(low)} y1={HEIGHT / 2 - 4} y2={HEIGHT / 2 + 4} />
        <line className="interval-whole" x1={x(high)} x2={x(high)} y1={HEIGHT / 2 - 4} y2={HEIGHT / 2 + 4} />
        <text x={Math.min(WIDTH - 26, Math.max(26, x(reference)))} y={HEIGHT + 9}>
          {written}, {name}
        </text>
        <circle cx={x(at)} cy={HEIGHT / 2} r="3.5" />
      </svg>
      {words}
    </span>
  );
}
