// The waterfall of a flow: when each of its jobs waited, ran and failed.
import type { FlowNode } from "../../../core/sql/flow-graph.ts";
import { round } from "../../parts/bar.tsx";
import { counted, duration } from "../../parts/numbers.ts";
import { type Shape, StateShape, shapeOfJob } from "../../parts/state.tsx";
import { None, Table } from "../../parts/table.tsx";

interface Props {
  nodes: readonly FlowNode[];
  from: Date;
  now: Date;
}

export function Waterfall({ nodes, from, now }: Props) {
  const isRunning = nodes.some(({ endedAt }) => endedAt === null);
  const ends = nodes.map(({ endedAt, createdAt }) => (endedAt ?? createdAt).getTime());
  const toMs = Math.max(from.getTime() + 1, isRunning ? now.getTime() : 0, ...ends);
  const span: Span = { fromMs: from.getTime(), toMs, nowMs: now.getTime() };
  return (
    <>
      <Table
        name="Jobs of the flow"
        rows={nodes}
        columns={[
          { title: "Job", class: "nw", cell: (node) => <Name node={node} now={now} /> },
          {
            title: (
              <span class="ends">
                <span>
                  <span class="sr">When, from </span>0 s
                </span>
                <span>
                  <span class="sr">to </span>
                  {duration(toMs - span.fromMs)}
                </span>
              </span>
            ),
            class: "wide",
            cell: (node) => <Bars parts={partsOf(node, now)} span={span} />,
          },
          { title: "Attempts", class: "n hide-s", cell: (node) => <Attempts {...node} /> },
          { title: "Ran for", class: "n", cell: (node) => ranFor(node, now) ?? <None text="–" /> },
        ]}
      />
      <p class="pad small muted">Thick: an attempt ran; red: it failed. Thin: it waited.</p>
    </>
  );
}

function Name({ node, now }: { node: FlowNode; now: Date }) {
  const { shape, word } = shapeOfJob(node, now);
  return (
    <span class="st">
      <StateShape shape={shape} label={word} />
      <a href={`/jobs/${node.id}`}>{node.type}</a>
    </span>
  );
}

function Attempts({ attempts, failures }: FlowNode) {
  if (attempts === 0) return <None text="not started" />;
  const failed = failures.length > 0 ? `, ${failures.length} failed` : "";
  return (
    <span class="muted">
      {counted(attempts, "attempt")}
      {failed}
    </span>
  );
}

function ranFor({ status, startedAt, endedAt }: FlowNode, now: Date): string | undefined {
  const end = status === "processing" ? now : endedAt;
  return startedAt && end ? duration(Math.max(0, end.getTime() - startedAt.getTime())) : undefined;
}

interface Part {
  shape: Shape;
  fromMs: number;
  toMs: number;
  isWaiting: boolean;
}

/** What a job did, in order: it waited, it ran, it failed and waited again. */
export function partsOf(node: FlowNode, now: Date): Part[] {
  const { shape } = shapeOfJob(node, now);
  const { status, startedAt, endedAt, createdAt, failures } = node;
  const ran = failures.map(({ startedAt: start, failedAt }) => ({
    shape: "dead" as Shape,
    fromMs: (start ?? failedAt).getTime(),
    toMs: failedAt.getTime(),
  }));
  const end = status === "processing" ? now : endedAt;
  const hasLastRun = (status === "processing" || status === "completed") && startedAt && end;
  if (hasLastRun) ran.push({ shape, fromMs: startedAt.getTime(), toMs: end.getTime() });
  const parts: Part[] = [];
  let at = createdAt.getTime();
  for (const run of ran) {
    const waited: Shape = parts.length === 0 ? "pending" : "retrying";
    if (run.fromMs > at) parts.push({ shape: waited, fromMs: at, toMs: run.fromMs, isWaiting: true });
    parts.push({ ...run, isWaiting: false });
    at = run.toMs;
  }
  const lastMs = (endedAt ?? now).getTime();
  if (!hasLastRun && lastMs > at) parts.push({ shape, fromMs: at, toMs: lastMs, isWaiting: true });
  return parts;
}

interface Span {
  fromMs: number;
  toMs: number;
  nowMs: number;
}

/** So wide at least that a short attempt is seen. In per cent. */
const minWidth = 0.6;

function Bars({ parts, span }: { parts: readonly Part[]; span: Span }) {
  const placeOf = (ms: number) =>
    Math.min(100, Math.max(0, ((ms - span.fromMs) / (span.toMs - span.fromMs)) * 100));
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
    </svg>
  );
}
