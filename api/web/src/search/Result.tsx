/** What came of a search, as sentences whose figures stand under each other. */

import { memo } from "react";

import type { Look } from "../blocks";
import type { Metric, Result as Found } from "../api/types";
import { Card } from "../ui/Card";
import { fixed, signed } from "../ui/format";
import { Strip } from "../ui/Strip";
import { Bounds } from "./Bounds";
import { Interval, Verdict } from "./Interval";
import { Layouts } from "./Layouts";
import { Lengths } from "./Lengths";
import { foundOf, latenciesOf, type ServedLatency, serveWords } from "./model/found";
import { counted, decimals, milliseconds, slotList } from "./model/format";
import { figure, metricsOf, references } from "./model/metrics";
import { latencyWord } from "./model/verdict";
import { Places } from "./Places";
import { Samples } from "./Samples";

export const Result = memo(function Result({ result, look }: { result: Found; look: (label: string) => Look }) {
  const { derived, parent, quality, latency } = result;
  const more = foundOf(result);
  const other = parent?.role === "present" ? "present model" : "parent";
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
          )}{" "}
          <a href={`/api/v1/searches/${String(result.search["id"])}/report?format=html`} target="_blank" rel="noreferrer">
            Report
          </a>
        </span>
      </div>
      {result.advice && (
        <p className="result-advice">
          <b>{result.advice.sentence}</b>
        </p>
      )}
      {parent && (quality || latency) ? (
        <div className="table-frame">
          <table className="table result-table">
            <thead>
              <tr>
                <th>On the test part of {result.search["dataset"] as string}</th>
                <th className="figure">the derived model has</th>
                <th className="figure">where the {other} has</th>
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
                  <td className="figure" data-says={`where the ${other} has`}>
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
                <MetricRow key={each.name} metric={each} other={other} />
              ))}
              {latenciesOf(result).map((each, at) => (
                <LatencyRow key={at} latency={each} other={other} />
              ))}
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
      <Layouts layouts={more.layouts} comparisons={more.comparisons} power={more.power} look={look} />
      <Bounds bounds={more.bounds} />
      <Lengths lengths={more.lengths} trained={more.trainLength} other={other} />
      <Samples samples={more.samples} winner={more.winner} />
      {more.cutShort.length > 0 && (
        <div className="cut-short">
          <p>Time was up before these had come to their end:</p>
          <ul>
            {more.cutShort.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </div>
      )}
      {result.positions && <Places positions={result.positions} />}
      {quality && quality.n_seeds < 5 && (
        <p className="quieter">
          {quality.n_seeds === 1
            ? "One seed is little: the interval is of the windows alone, and says nothing of other seeds"
            : `${quality.n_seeds} seeds are few`}
          . One dataset, one training budget, one machine{deviceWords(result)}.
        </p>
      )}
    </Card>
  );
});

/**
 * A figure of the field's own, a mean over seeds. Without a verdict: its interval is over the seeds alone, and says
 * nothing of other test examples.
 */
function MetricRow({ metric, other }: { metric: Metric; other: string }) {
  const { name, unit, derived, parent } = metric;
  const difference = metric.difference ?? (derived !== null && parent !== null ? derived - parent : null);
  const { low = null, high = null } = metric;
  const digits = low === null || high === null ? 3 : decimals(difference ?? 0, low, high);
  const direction = `${metric.lower_is_better ? "less" : "more"} is better`;
  return (
    <tr>
      <td>
        in {name} <span className="quieter">{[unit, direction, references(metric)].filter(Boolean).join("; ")}</span>
      </td>
      <td className="figure" data-says="the derived model has">
        <b>{figure(derived)}</b>
      </td>
      <td className="figure" data-says={`where the ${other} has`}>
        {figure(parent)}
      </td>
      <td data-says="which is">
        {difference !== null ? <b>{signed(difference, digits)}</b> : "–"}
      </td>
      {low !== null && high !== null && difference !== null ? (
        <td data-says="95% interval" colSpan={2}>
          <Interval
            at={difference}
            low={low}
            high={high}
            reference={0}
            words={`${signed(low, digits)} to ${signed(high, digits)}, over seeds`}
          />
        </td>
      ) : (
        <td className="quieter" colSpan={2}>
          mean of the seeds; no interval
        </td>
      )}
    </tr>
  );
}

/** Of one serve mode, timed in turns in one process. */
function LatencyRow({ latency, other }: { latency: ServedLatency; other: string }) {
  const { ratio, low, high, repeatability, serve } = latency;
  return (
    <tr>
      <td>
        in latency{" "}
        <span className="quieter">
          {serveWords(serve)}; repeats to ±{fixed(repeatability, 3)}
        </span>
      </td>
      <td className="figure" data-says="the derived model has">
        <b>{milliseconds(latency.derived_ms)}</b>
      </td>
      <td className="figure" data-says={`where the ${other} has`}>
        {milliseconds(latency.parent_ms)}
      </td>
      <td data-says="which is">
        <b>{fixed(ratio, 3)}</b> of the {other}'s
      </td>
      <td data-says="95% interval">
        <Interval
          at={ratio}
          low={low}
          high={high}
          reference={1}
          repeatability={repeatability}
          words={`${fixed(low, 3)} to ${fixed(high, 3)}`}
        />
      </td>
      <td data-says="so it is">
        <Verdict word={latencyWord(latency)} />
      </td>
    </tr>
  );
}

function deviceWords(result: Found): string {
  const device = result.search["device"] as Record<string, string> | undefined;
  if (!device?.["processor"]) return "";
  return ` (${device["accelerator"] ?? device["processor"]}, ${counted(Number(device["threads"] ?? 1), "thread")})`;
}
