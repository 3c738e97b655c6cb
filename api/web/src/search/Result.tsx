/** What came of a search, as sentences whose figures stand under each other; and the model to take away. */

import { memo } from "react";

import type { Look } from "../blocks";
import type { Artifact, Metric, Result as Found } from "../api/types";
import { Card } from "../ui/Card";
import { Command } from "../ui/Command";
import { bytes, fixed, signed } from "../ui/format";
import { Strip } from "../ui/Strip";
import { counted, decimals, milliseconds, scientific, slotList } from "./model/format";
import { better, figure, metricsOf, references } from "./model/metrics";
import { modelCommands } from "./model/use";
import { latencyWord, MEANING, spanOf, type Word } from "./model/verdict";
import { Places } from "./Places";

export const Result = memo(function Result({ result, look }: { result: Found; look: (label: string) => Look }) {
  const { derived, parent, quality, latency } = result;
  const metrics = metricsOf(result);
  const open = derived.undecided;
  const digits = quality ? decimals(quality.difference, quality.low, quality.high) : 3;
  const classifies = String(result.search["objective"]).endsWith("_classification");
  return (
    <Card title="Result" className="result-card" id="result">
      <div className="result-lead">
        <Strip labels={derived.slots} undecided={open} look={look} title="result" />
        <span>
          <code>{derived.string}</code>
          {open.length > 0 && (
            <>
              {" "}
              <span className="quiet">{slotList(open)} undecided: the cheapest of the tied blocks was taken</span>
            </>
          )}
        </span>
      </div>
      {parent && (quality || latency) ? (
        <div className="table-frame">
          <table className="table result-table">
            <thead>
              <tr>
                <th>On the test part of {result.search["dataset"] as string}</th>
                <th className="figure">the derived model has</th>
                <th className="figure">where the parent has</th>
                <th>which is</th>
                <th>95% interval</th>
                <th>so it is</th>
              </tr>
            </thead>
            <tbody>
              {quality && (
                <tr>
                  <td>
                    in quality{" "}
                    <span className="quieter">
                      {counted(quality.n_windows, classifies ? "example" : "window")}, {counted(quality.n_seeds, "seed")}
                    </span>
                  </td>
                  <td className="figure" data-says="the derived model has">
                    <b>{fixed(quality.derived_bits_per_byte, 3)}</b> {quality.unit ?? "bits per byte"}
                  </td>
                  <td className="figure" data-says="where the parent has">
                    {fixed(quality.parent_bits_per_byte, 3)} {quality.unit ?? "bits per byte"}
                  </td>
                  <td data-says="which is">
                    <b>{signed(quality.difference, digits)}</b> {quality.unit ?? "bits per byte"}
                  </td>
                  <td data-says="95% interval">
                    <Interval
                      at={quality.difference}
                      low={quality.low}
                      high={quality.high}
                      reference={0}
                      words={`${signed(quality.low, digits)} to ${signed(quality.high, digits)}`}
                    />
                  </td>
                  <td data-says="so it is">
                    <Verdict word={quality.verdict} />
                  </td>
                </tr>
              )}
              {metrics.map((each) => (
                <MetricRow key={each.name} metric={each} />
              ))}
              {latency && (
                <tr>
                  <td>
                    in latency{" "}
                    <span className="quieter">
                      {serveWords(result)}; repeats to ±{fixed(latency.repeatability, 3)}
                    </span>
                  </td>
                  <td className="figure" data-says="the derived model has">
                    <b>{milliseconds(latency.derived_ms)}</b>
                  </td>
                  <td className="figure" data-says="where the parent has">
                    {milliseconds(latency.parent_ms)}
                  </td>
                  <td data-says="which is">
                    <b>{fixed(latency.ratio, 3)}</b> of the parent's
                  </td>
                  <td data-says="95% interval">
                    <Interval
                      at={latency.ratio}
                      low={latency.low}
                      high={latency.high}
                      reference={1}
                      repeatability={latency.repeatability}
                      words={`${fixed(latency.low, 3)} to ${fixed(latency.high, 3)}`}
                    />
                  </td>
                  <td data-says="so it is">
                    <Verdict word={latencyWord(latency)} />
                  </td>
                </tr>
              )}
            </tbody>
          </table>
        </div>
      ) : (
        <>
          {metrics.length > 0 && (
            <ul className="facts result-metrics">
              {metrics.map((each) => (
                <li key={each.name}>
                  {each.name} <b>{figure(each.derived)}</b> <span className="quiet">{each.unit}</span>{" "}
                  <span className="quieter">{references(each)}</span>
                </li>
              ))}
            </ul>
          )}
          <p className="quiet">The request asked for no baseline, so there is nothing to compare with.</p>
        </>
      )}
      {result.positions && <Places positions={result.positions} />}
      {quality && quality.n_seeds < 5 && (
        <p className="quieter">
          {quality.n_seeds === 1 ? "One seed is little" : `${quality.n_seeds} seeds are few`}: read the intervals as a lower bound of the doubt. One dataset, one
          training budget, one machine{deviceWords(result)}.
        </p>
      )}
    </Card>
  );
});

/** A figure of the field's own: a mean over seeds, told without an interval, so without a verdict. */
function MetricRow({ metric }: { metric: Metric }) {
  const { name, unit, derived, parent } = metric;
  const word = better(metric);
  return (
    <tr>
      <td>
        in {name} <span className="quieter">{[unit, references(metric)].filter(Boolean).join("; ")}</span>
      </td>
      <td className="figure" data-says="the derived model has">
        <b>{figure(derived)}</b>
      </td>
      <td className="figure" data-says="where the parent has">
        {figure(parent)}
      </td>
      <td data-says="which is">
        {derived !== null && parent !== null ? <b>{signed(derived - parent, 3)}</b> : "–"}
        {word && <span className="quiet"> {word}</span>}
      </td>
      <td className="quieter" colSpan={2}>
        mean of the seeds; no interval
      </td>
    </tr>
  );
}

function serveWords(result: Found): string {
  const [serve] = (result.search["serve"] ?? []) as { batch: number; query_length: number }[];
  return serve ? `batch ${serve.batch} × ${serve.query_length} tokens` : "first serve mode";
}

function deviceWords(result: Found): string {
  const device = result.search["device"] as Record<string, string> | undefined;
  if (!device?.["processor"]) return "";
  return ` (${device["processor"]}, ${counted(Number(device["threads"] ?? 1), "thread")})`;
}

function Verdict({ word }: { word: Word }) {
  return (
    <span className="verdict" data-word={word} title={MEANING[word]}>
      {word}
    </span>
  );
}

const WIDTH = 190;
const HEIGHT = 20;
const LABEL = 12;

/** The interval, its middle and the reference: which side it lies on is the verdict. */
function Interval({
  at,
  low,
  high,
  reference,
  repeatability = 0,
  words,
}: {
  at: number;
  low: number;
  high: number;
  reference: number;
  repeatability?: number;
  words: string;
}) {
  const [from, to] = spanOf([low, high, at, reference - repeatability, reference + repeatability]);
  const x = (value: number) => ((value - from) / (to - from)) * WIDTH;
  return (
    <span className="interval">
      <svg width={WIDTH} height={HEIGHT + LABEL} role="img" aria-label={`${words}; ${reference} is as the parent`}>
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
          {reference}, parent
        </text>
        <circle cx={x(at)} cy={HEIGHT / 2} r="3.5" />
      </svg>
      {words}
    </span>
  );
}

/** The file to take away, what vouches for it, and the commands that use it. */
export const Model = memo(function Model({
  result,
  artifacts,
  synthetic,
}: {
  result: Found;
  artifacts: readonly Artifact[];
  /** Whether the data are a synthetic task's: the model reads token ids then. */
  synthetic: boolean;
}) {
  const { packages, run } = modelCommands(result, synthetic);
  const file = artifacts.find((each) => each.kind === "export");
  return (
    <Card title="Model" className="model-card">
      {file ? (
        <ul className="facts">
          <li>
            <a href={`/api/v1/artifacts/${file.id}`} download={file.name}>
              {file.name}
            </a>{" "}
            {bytes(file.n_bytes)}
          </li>
          <li>
            logits equal to the trained model's within <b>{scientific(result.export.logits_max_abs_difference)}</b>
          </li>
          <li>
            sha256 <code title={file.sha256}>{file.sha256.slice(0, 16)}…</code>
          </li>
          {artifacts
            .filter((each) => each !== file)
            .map((each) => (
              <li key={each.id}>
                <a href={`/api/v1/artifacts/${each.id}`} download={each.name}>
                  {each.name}
                </a>{" "}
                {bytes(each.n_bytes)}
              </li>
            ))}
        </ul>
      ) : (
        <p className="quiet">The export's file is listed once it is written.</p>
      )}
      <p className="quiet">It runs without Blockwright; {listed(packages)} are all it needs.</p>
      <div className="commands">
        <Command>unzip export.zip -d model && cd model</Command>
        <Command>{`pip install ${packages.join(" ")}`}</Command>
        <Command>{run}</Command>
      </div>
    </Card>
  );
});

const listed = (words: string[]) => `${words.slice(0, -1).join(", ")} and ${words.at(-1) ?? ""}`;
