// A chart as SVG, drawn on the server. The outer SVG has no viewBox, so its text never scales; only the plot stretches.
import type { Child } from "hono/jsx";
import { round } from "./bar.tsx";
import { count, minuteTime } from "./numbers.ts";
import type { Shape } from "./state.tsx";

export interface Series {
  shape: Shape;
  /** Null: nothing is known of that bucket, and nothing is drawn. */
  values: readonly (number | null)[];
  /** A line for what flows; bars for what must not be missed. */
  as?: "line" | "bars";
}

interface ChartProps {
  /** Unique on the page. */
  id: string;
  title: string;
  unit?: string;
  /** At the right of the caption: the latest number. */
  now: Child;
  /** The beginning of each bucket, and of the end. One more than the values. */
  times: readonly Date[];
  series: readonly Series[];
  /** A dashed line at each of these times. */
  marks?: readonly { at: Date }[];
  /** A shade from one time to another. */
  gaps?: readonly { from: Date; to: Date }[];
  /** The tooltip of a bucket. */
  describe(index: number): string;
}

/** The plot lies between these lines, in px. */
const area = { top: 18, height: 102, labels: 138 };

export function Chart({ id, title, unit, now, times, series, marks = [], gaps = [], describe }: ChartProps) {
  const known = series.map(({ values }) => values.filter((value) => value !== null));
  const top = roundTop(Math.max(...known.flat(), 1));
  return (
    <figure class="chart">
      <figcaption>
        <h2 id={id}>{title}</h2>
        <span class="small muted">{unit}</span>
        <span class="push small muted">{now}</span>
      </figcaption>
      <svg class="plot" role="img" aria-labelledby={`${id}-t ${id}-d`}>
        <title id={`${id}-t`}>{unit ? `${title}, ${unit}` : title}</title>
        <desc id={`${id}-d`}>
          {known[0] && known[0].length > 0 ? spanOf(known[0]) : "Nothing was recorded."}
        </desc>
        <Grid top={top} />
        <Gaps gaps={gaps} times={times} />
        <Marks marks={marks} times={times} />
        <svg
          y={area.top}
          width="100%"
          height={area.height}
          viewBox="0 0 100 100"
          preserveAspectRatio="none"
          overflow="visible"
          aria-hidden="true"
        >
          {series.map((one) =>
            one.as === "bars" ? <Bars {...one} top={top} /> : <Line {...one} top={top} />,
          )}
        </svg>
        <Hits count={times.length - 1} describe={describe} />
        <TimeLabels times={times} />
      </svg>
    </figure>
  );
}

function Grid({ top }: { top: number }) {
  const middle = area.top + area.height / 2;
  const lines = [area.top + area.height, middle, area.top];
  return (
    <>
      {lines.map((y) => (
        <line x1="0" x2="100%" y1={y + 0.5} y2={y + 0.5} />
      ))}
      <text x="0" y={middle - 4}>
        {count(top / 2)}
      </text>
      <text x="0" y={area.top - 4}>
        {count(top)}
      </text>
    </>
  );
}

function spanOf(values: readonly number[]): string {
  return `between ${count(Math.min(...values))} and ${count(Math.max(...values))}, last ${count(values.at(-1) ?? 0)}.`;
}

/** Where a time is, in per cent. */
function placeOf(at: Date, times: readonly Date[]): number {
  const [from = 0, to = 1] = [times[0]?.getTime(), times.at(-1)?.getTime()];
  return round(Math.min(100, Math.max(0, ((at.getTime() - from) / (to - from)) * 100)));
}

function Marks({ marks, times }: { marks: readonly { at: Date }[]; times: readonly Date[] }) {
  const places = new Set(marks.map(({ at }) => `${placeOf(at, times)}%`));
  return (
    <>
      {[...places].map((x) => (
        <line class="mark" x1={x} x2={x} y1={area.top} y2={area.top + area.height} />
      ))}
    </>
  );
}

function Gaps({ gaps, times }: { gaps: readonly { from: Date; to: Date }[]; times: readonly Date[] }) {
  return (
    <>
      {gaps.map(({ from, to }) => {
        const x = placeOf(from, times);
        const width = round(placeOf(to, times) - x);
        return (
          <rect
            class="k-later"
            opacity=".12"
            x={`${x}%`}
            y={area.top}
            width={`${width}%`}
            height={area.height}
          />
        );
      })}
    </>
  );
}

/** A point in the middle of each bucket. Where nothing is known the line has a gap. */
function Line({ shape, values, top }: Series & { top: number }) {
  const step = 100 / Math.max(values.length, 1);
  return (
    <>
      {runsOf(values).map(({ from, run }) => {
        const [start, end] = [round(from * step), round((from + run.length) * step)];
        const heights = run.map((value) => round(100 - (value / top) * 100));
        const points = heights.map((y, index) => `${round((from + index + 0.5) * step)} ${y}`);
        const line = `${start} ${heights[0]}L${points.join("L")}L${end} ${heights.at(-1)}`;
        return (
          <>
            <path class={`area k-${shape}`} d={`M${start} 100L${line}L${end} 100z`} />
            <path class={`k-${shape}`} d={`M${line}`} />
          </>
        );
      })}
    </>
  );
}

/** The parts of a series in which everything is known. */
function runsOf(values: readonly (number | null)[]): { from: number; run: number[] }[] {
  const runs: { from: number; run: number[] }[] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    const last = runs.at(-1);
    if (last && last.from + last.run.length === index) last.run.push(value);
    else runs.push({ from: index, run: [value] });
  });
  return runs;
}

function Bars({ shape, values, top }: Series & { top: number }) {
  const step = 100 / Math.max(values.length, 1);
  return (
    <>
      {values.map((value, index) =>
        value === 0 || value === null ? null : (
          <rect
            class={`k-${shape}`}
            x={round(index * step + step * 0.2)}
            y={round(100 - (value / top) * 100)}
            width={round(step * 0.6)}
            height={round((value / top) * 100)}
          />
        ),
      )}
    </>
  );
}

/** Invisible, one for each bucket: they carry the tooltips. */
function Hits({ count: buckets, describe }: { count: number; describe(index: number): string }) {
  const width = 100 / Math.max(buckets, 1);
  return (
    <>
      {Array.from({ length: buckets }, (_, index) => (
        <rect
          class="hit"
          x={`${round(index * width)}%`}
          y={area.top}
          width={`${round(width)}%`}
          height={area.height}
        >
          <title>{describe(index)}</title>
        </rect>
      ))}
    </>
  );
}

function TimeLabels({ times }: { times: readonly Date[] }) {
  const [first, last] = [times[0], times.at(-1)];
  const middle = times[Math.floor(times.length / 2)];
  if (!first || !middle || !last) return null;
  return (
    <>
      <text x="0%" y={area.labels}>
        {minuteTime(first)}
      </text>
      <text x="50%" y={area.labels} text-anchor="middle">
        {minuteTime(middle)}
      </text>
      <text x="100%" y={area.labels} text-anchor="end">
        {minuteTime(last)}
      </text>
    </>
  );
}

/** The next round number whose half is a whole number too. */
export function roundTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const tops = [1, 2, 4, 5, 6, 8, 10, 20].map((factor) => factor * power);
  return tops.find((top) => top >= value && top % 2 === 0) ?? value;
}
