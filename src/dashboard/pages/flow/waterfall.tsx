// The waterfall of a flow: when each of its jobs waited, ran and failed, and each of their durable steps.
import type { JobStep } from "../../../core/job-steps.ts";
import type { FlowNode } from "../../../core/sql/flow-graph.ts";
import { counted, duration } from "../../parts/numbers.ts";
import { type Shape, StateShape, shapeOfJob } from "../../parts/state.tsx";
import { None, Table } from "../../parts/table.tsx";
import { lengthOfStep, type Part, partsOfStep, spanOf, whenColumn } from "../../parts/waterfall.tsx";
import { StepName } from "../job/steps.tsx";

interface Props {
  nodes: readonly FlowNode[];
  from: Date;
  now: Date;
}

/** A job, or one of its steps. */
interface FallRow {
  node: FlowNode;
  step?: JobStep;
}

export function Waterfall({ nodes, from, now }: Props) {
  const isOver = nodes.every(({ endedAt }) => endedAt !== null);
  const rows = nodes.flatMap((node): FallRow[] => [{ node }, ...node.steps.map((step) => ({ node, step }))]);
  const times = rows.flatMap(({ node, step }) => (step ? step.endedAt : node.endedAt)?.getTime() ?? []);
  const span = spanOf([from.getTime(), ...times], { isOver, nowMs: now.getTime() });
  const partsOfRow = ({ node, step }: FallRow) => (step ? partsOfStep(step, now) : partsOf(node, now));
  return (
    <>
      <Table
        name="Jobs of the flow"
        rows={rows}
        columns={[
          {
            title: "Job",
            class: "nw",
            cell: ({ node, step }) =>
              step ? (
                <span class="step">
                  <StepName step={step} now={now} />
                </span>
              ) : (
                <Name node={node} now={now} />
              ),
          },
          whenColumn(span, partsOfRow),
          {
            title: "Attempts",
            class: "n hide-s",
            cell: ({ node, step }) => (step ? null : <Attempts {...node} />),
          },
          {
            title: "Ran for",
            class: "n",
            cell: ({ node, step }) =>
              (step ? lengthOfStep(step, now) : ranFor(node, now)) ?? <None text="–" />,
          },
        ]}
      />
      <p class="pad small muted">
        Thick: an attempt or a step ran; red: it failed. Thin: it waited.
        {span.nowMs < span.toMs && !isOver ? " Dashed: now." : ""}
      </p>
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
