// Times as bars: when something waited, ran and failed. Jobs of a flow and durable steps of a job are drawn so.
import type { JobStep, StepKind } from "../../core/job-steps.ts";
import { round } from "./bar.tsx";
import { duration, wholeSeconds } from "./numbers.ts";
import type { Shape } from "./state.tsx";
import type { Column } from "./table.tsx";

export interface Part {
  shape: Shape;
  fromMs: number;
  toMs: number;
  /** Drawn thin. */
  isWaiting: boolean;
}

export interface Span {
  fromMs: number;
  toMs: number;
  nowMs: number;
}

/** From the first beginning to the last end. While something goes on, at least until now. */
export function spanOf(
  times: readonly number[],
  { isOver, nowMs }: { isOver: boolean; nowMs: number },
): Span {
  const all = isOver ? times : [...times, nowMs];
  const fromMs = Math.min(...all);
  return { fromMs, toMs: Math.max(fromMs + 1, ...all), nowMs };
}

/** The column of the bars. Its heading has both ends. */
export function whenColumn<Row>(span: Span, partsOf: (row: Row) => readonly Part[]): Column<Row> {
  return {
    title: (
      <span class="ends">
        <span>
          <span class="sr">When, from </span>0 s
        </span>
        <span>
          <span class="sr">to </span>
          {duration(span.toMs - span.fromMs)}
        </span>
      </span>
    ),
    class: "wide",
    cell: (row) => <Bars parts={partsOf(row)} span={span} />,
  };
}

/** So wide at least that a short attempt is seen. In per cent. */
const minWidth = 0.6;

function Bars({ parts, span }: { parts: readonly Part[]; span: Span }) {
  const placeOf = (ms: number) =>
    Math.min(100, Math.max(0, ((ms - span.fromMs) / (span.toMs - span.fromMs)) * 100));
  const now = `${round(placeOf(span.nowMs))}%`;
  return (
    <svg class="fall" aria-hidden="true">
      {parts.map(({ shape, fromMs, toMs, isWaiting }) => {
        const x = Math.min(placeOf(fromMs), 100 - minWidth);
        const width = Math.max(placeOf(toMs) - x, minWidth);
        return (
          <rect
            class={isWaiting ? `k-${shape} wait` : `k-${shape}`}
            x={`${round(x)}%`}
            width={`${round(width)}%`}
            y={isWaiting ? 6 : 2}
            height={isWaiting ? 4 : 12}
            rx="2"
          />
        );
      })}
      {span.nowMs < span.toMs ? <line x1={now} x2={now} y2="16" /> : null}
    </svg>
  );
}

const shapes: Record<StepKind, Shape> = { run: "completed", sleep: "later", wait: "blocked", all: "blocked" };

/** Nothing if its time is not known. */
export function partsOfStep({ kind, startedAt, endedAt }: JobStep, now: Date): Part[] {
  const from = startedAt ?? endedAt;
  if (!from) return [];
  const to = endedAt ?? now;
  return [{ shape: shapes[kind], fromMs: from.getTime(), toMs: to.getTime(), isWaiting: kind !== "run" }];
}

/** Of a step that is not over: its shape, and how it stands. */
export function stateOfStep(step: JobStep, now: Date): { shape: Shape; word: string } {
  const { kind, startedAt, endedAt } = step;
  const isOver = endedAt ? endedAt <= now : startedAt === null;
  const word = { run: "ran", sleep: "slept", wait: "waited for a signal", all: "waited for its children" };
  const open = { run: "runs", sleep: "sleeps", wait: "waits for a signal", all: "waits for its children" };
  return isOver ? { shape: "completed", word: word[kind] } : { shape: shapes[kind], word: open[kind] };
}

/** "212 ms". Undefined if it is not known. */
export function lengthOfStep({ startedAt, endedAt }: JobStep, now: Date): string | undefined {
  if (!startedAt) return undefined;
  if (endedAt) return duration(Math.max(0, endedAt.getTime() - startedAt.getTime()));
  return `${wholeSeconds(Math.max(0, Math.floor((now.getTime() - startedAt.getTime()) / 1000)))} so far`;
}
