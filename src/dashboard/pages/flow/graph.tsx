// The graph of a flow, drawn on the server.
import type { FlowNode } from "../../../core/sql/flow-graph.ts";
import { round } from "../../parts/bar.tsx";
import { counted, duration, wholeSeconds } from "../../parts/numbers.ts";
import { ShapeInPicture } from "../../parts/state.tsx";
import { type Box, boxesOf } from "./boxes.ts";
import { box as boxSize, type Layout, layOut, type Point } from "./layout.ts";

/** A graph with more lines is a black square. */
const maxLines = 1_000;
/** What fits into a box. */
const maxCharacters = 19;

export function Graph({ nodes, now }: { nodes: readonly FlowNode[]; now: Date }) {
  const boxes = boxesOf(nodes, now);
  const lines = boxes.reduce((sum, { after }) => sum + after.length, 0);
  if (lines > maxLines)
    return (
      <p class="pad muted">
        The graph is not drawn: it would have {counted(lines, "line")}, more than {maxLines}.
      </p>
    );
  const layout = layOut(boxes);
  return (
    <div class="scroll pad" role="group" aria-label="Graph" tabindex={0}>
      <svg
        class="dag"
        width={layout.width}
        height={round(layout.height)}
        role="group"
        aria-labelledby="dag-t dag-d"
      >
        <title id="dag-t">Graph of the flow</title>
        <desc id="dag-d">{boxes.map((box) => `${nameOf(box)}: ${noteOf(box, now)}`).join("; ")}</desc>
        <defs>
          <marker
            id="tip"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            orient="auto"
            markerUnits="userSpaceOnUse"
          >
            <path class="tip" d="M0 0l8 4-8 4z" />
          </marker>
        </defs>
        <Lines boxes={boxes} lines={layout.lines} />
        {boxes.map((box) => (
          <BoxShape box={box} at={layout.boxes.get(box.id) ?? { x: 0, y: 0 }} now={now} />
        ))}
      </svg>
    </div>
  );
}

function Lines({ boxes, lines }: { boxes: readonly Box[]; lines: Layout["lines"] }) {
  const done = new Set(boxes.filter(({ shape }) => shape === "completed").map(({ id }) => id));
  return (
    <>
      {lines.map(({ from, points }) => (
        <path class={done.has(from) ? "edge" : "edge is-wait"} marker-end="url(#tip)" d={pathOf(points)} />
      ))}
    </>
  );
}

/** A curve between two layers, and straight through a layer that it passes. */
function pathOf([start = { x: 0, y: 0 }, ...points]: readonly Point[]): string {
  let from = start;
  const parts = points.map((to, index) => {
    const half = round((from.x + to.x) / 2);
    const part =
      index % 2 === 0
        ? `C${half} ${round(from.y)} ${half} ${round(to.y)} ${to.x} ${round(to.y)}`
        : `H${to.x}`;
    from = to;
    return part;
  });
  return `M${start.x} ${round(start.y)}${parts.join("")}`;
}

function BoxShape({ box, at, now }: { box: Box; at: Point; now: Date }) {
  const [x, y] = [at.x, round(at.y)];
  const isGroup = box.jobs.length > 1;
  const isNow = box.shape === "processing" || box.shape === "retrying";
  return (
    <a href={isGroup ? "#jobs" : `/jobs/${box.id}`}>
      <title>{`${nameOf(box)}: ${noteOf(box, now)}`}</title>
      <rect
        class={isNow ? "box is-now" : "box"}
        x={x}
        y={y}
        width={boxSize.width}
        height={boxSize.height}
        rx="8"
      />
      <ShapeInPicture shape={box.shape} x={x + 12} y={y + 12} />
      <text class="name" x={x + 34} y={y + 23}>
        {shorten(nameOf(box))}
      </text>
      <text x={x + 34} y={y + 40}>
        {shorten(noteOf(box, now))}
      </text>
    </a>
  );
}

function nameOf({ jobs }: Box): string {
  const type = jobs[0]?.type ?? "";
  return jobs.length > 1 ? `${jobs.length} × ${type}` : type;
}

function noteOf({ jobs: [job], shape, word, needs }: Box, now: Date): string {
  if (!job) return word;
  const { startedAt, endedAt, attempts, maxAttempts, scheduledAt, deadReason } = job;
  const seconds = Math.ceil((scheduledAt.getTime() - now.getTime()) / 1000);
  switch (shape) {
    case "completed":
      return startedAt && endedAt ? `${word}, ${duration(endedAt.getTime() - startedAt.getTime())}` : word;
    case "processing":
      return `attempt ${attempts} of ${maxAttempts}`;
    case "retrying":
      return `attempt ${attempts + 1} in ${wholeSeconds(seconds)}`;
    case "later":
      return `${word}, in ${wholeSeconds(seconds)}`;
    case "blocked":
      return needs + job.outside > 0 ? `${word}, needs ${needs + job.outside}` : word;
    case "dead":
      return `${word}, ${deadReason}`;
    default:
      return word;
  }
}

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters - 1)}…` : text;
}
