/** Curves over steps (uPlot), with a legend whose values are those under the pointer, else of the step that the picture shows. */

import { type CSSProperties, memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { count } from "../ui/format";
import { placeOfStep } from "./model/curve";
import type { Span } from "./model/phases";
import { drawMark, drawNote, drawSpans, drawStep, type Mark } from "./plotMarks";
import { token, useTheme } from "./theme";

export interface Line {
  label: string;
  /** A token such as "--seed-0", or #rrggbb. */
  colour: string;
  width?: number;
  dash?: number[] | undefined;
  /** Left out of the legend: it stands for the line before it. */
  silent?: boolean;
  /** What the legend shows before the name: a block's letter. */
  letter?: string;
  /** What the legend adds to the value at a place of the steps; null: at the newest. */
  adds?: (place: number | null) => string;
}

interface Props {
  title: string;
  lines: readonly Line[];
  /** Steps, then the values of each line. */
  data: readonly (readonly (number | null)[])[];
  show: (value: number | null) => string;
  height?: number;
  marks?: readonly Mark[];
  /** Phases, told apart by a shade and their names. */
  spans?: readonly Span[] | undefined;
  /** Steps at which something was found, which is told in words elsewhere. */
  notes?: readonly number[] | undefined;
  /** Last step planned: the axis does not move while points arrive. */
  until: number;
  /** The step that the picture shows; null follows the newest. */
  step?: number | null;
  onStep?: (step: number) => void;
  /** Ends of the y axis; else those of what is shown. */
  range?: readonly [number, number];
  /** Do not let the fall of the first steps flatten all that follows. */
  settle?: boolean;
  empty: string;
}

const SYNC = "steps";
export const PLOT_HEIGHT = 180;

export const Plot = memo(function Plot(props: Props) {
  const { title, lines, data, show, height = PLOT_HEIGHT, step = null, empty } = props;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = useTheme();
  const [at, setAt] = useState<number | null>(null);
  const shape = JSON.stringify([lines.map((each) => [each.label, each.colour, each.dash, each.width]), height]);

  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const made = new uPlot(
      options(latest, element.clientWidth, height, setAt),
      latest.current.data as uPlot.AlignedData,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientWidth !== made.width) {
        made.setSize({ width: element.clientWidth, height });
      }
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, height]);

  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData);
  }, [data, props.until, props.range]); // both ends of an axis are read anew with the data
  useEffect(() => {
    plot.current?.redraw(false);
  }, [step, theme, props.marks, props.spans, props.notes]);

  const none = data.slice(1).every((column) => column.every((value) => value === null));
  const steps = (data[0] ?? []) as readonly number[];
  const place =
    at !== null && at < steps.length
      ? at
      : step === null || steps.length === 0
        ? null
        : Math.max(0, placeOfStep(steps, step + 1) - 1);
  return (
    <figure className="plot" aria-label={title}>
      <figcaption>
        {lines.map((line, index) => {
          if (line.silent) return null;
          const column = data[index + 1] ?? [];
          const value = place === null ? newest(column) : nearest(column, place);
          return (
            <span key={index} className="plot-key">
              <i
                style={{ "--key": line.colour.startsWith("--") ? `var(${line.colour})` : line.colour } as CSSProperties}
                data-dash={line.dash ? ((line.dash[0] ?? 0) > 3 ? "long" : "short") : undefined}
              />
              {line.letter && <b aria-hidden="true">{line.letter}</b>}
              {line.label} <span className={line.adds ? "plot-value plot-sure" : "plot-value"}>
                {[show(value), line.adds?.(place)].filter(Boolean).join(", ")}
              </span>
            </span>
          );
        })}
        <span className="plot-step">{place === null ? "" : `step ${count(steps[place] ?? 0)}`}</span>
      </figcaption>
      <div ref={frame} className="plot-frame" style={{ height }}>
        {none && <p className="plot-empty">{empty}</p>}
      </div>
    </figure>
  );
});

function newest(column: readonly (number | null)[]): number | null {
  for (let at = column.length - 1; at >= 0; at--) if (column[at] != null) return column[at] as number;
  return null;
}

/** Lines of other trials have other steps: the value at or before the pointer. */
function nearest(column: readonly (number | null)[], place: number): number | null {
  for (let at = place; at >= 0; at--) if (column[at] != null) return column[at] as number;
  return null;
}

function options(
  latest: { current: Props },
  width: number,
  height: number,
  setAt: (at: number | null) => void,
): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: () => token("--ink-3"),
    grid: { stroke: () => token("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    gap: 6,
  };
  const colour = (name: string) => (name.startsWith("--") ? token(name) : name);
  return {
    width: Math.max(40, width),
    height,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: SYNC, setSeries: false },
      drag: { x: false, y: false },
      points: { size: 6 },
      y: false,
      bind: {
        click: (self) => () => {
          const at = self.cursor.idx;
          const step = at == null ? undefined : self.data[0][at];
          if (step !== undefined) latest.current.onStep?.(step);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, range: () => [0, Math.max(1, latest.current.until)] },
      y: { range: (_, low, high) => yRange(latest.current, low, high) },
    },
    axes: [
      { ...axis, size: 26, space: 56 },
      { ...axis, size: 46, space: 32 },
    ],
    series: [
      {},
      ...latest.current.lines.map((line) => ({
        label: line.label,
        stroke: () => colour(line.colour),
        width: line.width ?? 1.75,
        ...(line.dash ? { dash: line.dash } : {}),
        spanGaps: true,
        points: {
          show: (self: uPlot, index: number) => (self.data[index] ?? []).filter((value) => value != null).length === 1,
        },
      })),
    ],
    hooks: {
      drawClear: [(self) => drawSpans(self, latest.current.spans ?? [])],
      draw: [
        (self) => {
          for (const mark of latest.current.marks ?? []) drawMark(self, mark);
          for (const note of latest.current.notes ?? []) drawNote(self, note);
          const { step } = latest.current;
          if (step != null) drawStep(self, step);
        },
      ],
      setCursor: [
        (self) => setAt(self.cursor.left != null && self.cursor.left >= 0 ? (self.cursor.idx ?? null) : null),
      ],
    },
  };
}

function yRange(props: Props, low: number | null, high: number | null): [number, number] {
  if (props.range) return [props.range[0], props.range[1]];
  let [bottom, top] = [low ?? 0, high ?? 1];
  const steps = props.data[0] ?? [];
  if (props.settle && steps.length > 12) {
    const from = 0.12 * props.until;
    const settled = props.data
      .slice(1)
      .flatMap((column) => column.filter((value, at) => value !== null && (steps[at] ?? 0) >= from)) as number[];
    if (settled.length > 4) {
      bottom = Math.min(...settled);
      top = Math.max(...settled);
    }
  }
  for (const mark of props.marks ?? []) {
    bottom = Math.min(bottom, mark.y);
    top = Math.max(top, mark.y);
  }
  const room = (top - bottom || Math.abs(top) || 1) * 0.08;
  return [bottom - room, top + room];
}
