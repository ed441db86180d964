// The segmented bar of states, and the sparkline.

import { count } from "./numbers.ts";
import type { Shape } from "./state.tsx";

export interface Segment {
  shape: Shape;
  word: string;
  value: number;
}

/** So wide at least that one dead job of a million is seen. In per cent. */
const minWidth = 1.6;
const height = 6;

export function Bar({ name, segments }: { name: string; segments: readonly Segment[] }) {
  const label = `${name}: ${segments.map(({ word, value }) => `${count(value)} ${word}`).join(", ")}`;
  const shown = segments.filter(({ value }) => value > 0);
  const widths = toWidths(shown.map(({ value }) => value));
  return (
    <svg class="bar" role="img" aria-label={label}>
      <title>{label}</title>
      {shown.map(({ shape }, index) => {
        const x = `${round(widths.slice(0, index).reduce((sum, width) => sum + width, 0))}%`;
        return (
          <>
            <rect class={`k-${shape}`} x={x} width={`${round(widths[index] ?? 0)}%`} height={height} />
            {index > 0 ? <rect class="gap" x={x} width="2" height={height} /> : null}
          </>
        );
      })}
    </svg>
  );
}

/** In per cent. What the narrow ones get more is taken from the others in proportion. */
function toWidths(values: readonly number[]): number[] {
  const total = values.reduce((sum, value) => sum + value, 0);
  const isNarrow = (value: number) => (value / total) * 100 < minWidth;
  const wide = values.filter((value) => !isNarrow(value)).reduce((sum, value) => sum + value, 0);
  const room = 100 - minWidth * values.filter(isNarrow).length;
  return values.map((value) => (isNarrow(value) ? minWidth : (value / wide) * room));
}

const spark = { width: 88, height: 20, top: 2 };

interface SparklineProps {
  label: string;
  /** Null, for what is not known, is drawn as zero. */
  values: readonly (number | null)[];
  /** The colour of a state. Without it, that of links. */
  shape?: Shape;
}

export function Sparkline({ label, values, shape }: SparklineProps) {
  const top = Math.max(...values.map((value) => value ?? 0), 1);
  const step = spark.width / Math.max(values.length - 1, 1);
  const points = values
    .map(
      (value, index) =>
        `${round(index * step)} ${round(spark.height - ((value ?? 0) / top) * (spark.height - spark.top))}`,
    )
    .join("L");
  return (
    <svg
      class={shape ? `spark k-${shape}` : "spark"}
      viewBox={`0 0 ${spark.width} ${spark.height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <path class="area" d={`M0 ${spark.height}L${points}L${spark.width} ${spark.height}z`} />
      <path d={`M${points}`} />
    </svg>
  );
}

export function round(value: number): number {
  return Math.round(value * 100) / 100;
}
