// The boxes of a flow's graph: one for each job, and one for many jobs that look the same.
import type { FlowNode } from "../../../core/sql/flow-graph.ts";
import { type Shape, shapeOfJob } from "../../parts/state.tsx";
import type { GraphNode } from "./layout.ts";

export interface Box extends GraphNode {
  /** At least one. Several of the same type and state wait for the same jobs, and the same jobs wait for them. */
  jobs: readonly FlowNode[];
  shape: Shape;
  word: string;
  /** How many of its blockers have not completed. */
  needs: number;
}

/** So many that look the same become one box. */
const minGroup = 4;

export function boxesOf(nodes: readonly FlowNode[], now: Date): Box[] {
  const after = blockersOf(nodes);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const waiting = Map.groupBy(
    nodes.flatMap(({ id }) => (after.get(id) ?? []).map((from) => ({ from, id }))),
    ({ from }) => from,
  );
  const looks = (node: FlowNode) =>
    JSON.stringify([
      node.type,
      shapeOfJob(node, now).word,
      after.get(node.id)?.toSorted(),
      waiting.get(node.id)?.map(({ id }) => id),
    ]);
  const groups = [...Map.groupBy(nodes, looks).values()].flatMap((jobs) =>
    jobs.length >= minGroup ? [jobs] : jobs.map((job) => [job]),
  );
  const boxIds = new Map(groups.flatMap((jobs) => jobs.map(({ id }) => [id, jobs[0]?.id ?? id])));
  return groups.flatMap((jobs) => {
    const [first] = jobs;
    if (!first) return [];
    const blockers = after.get(first.id) ?? [];
    const needs = blockers.filter((id) => byId.get(id)?.status !== "completed").length;
    const shownAfter = [...new Set(blockers.map((id) => boxIds.get(id) ?? id))];
    return [{ id: first.id, after: shownAfter, jobs, needs, ...shapeOfJob(first, now) }];
  });
}

/** By id. A job waits for the last job of a chain; a continuation waits for the job before it. */
function blockersOf(nodes: readonly FlowNode[]): Map<string, string[]> {
  const chains = Map.groupBy(nodes, ({ id, chainId }) => chainId ?? id);
  const placeOf = ({ chainIndex }: FlowNode) => chainIndex ?? 0;
  const chainOf = (id: string) => (chains.get(id) ?? []).toSorted((a, b) => placeOf(a) - placeOf(b));
  return new Map(
    nodes.map((node) => {
      const waited = node.blockers.flatMap((id) => chainOf(id).at(-1)?.id ?? []);
      const before = node.chainId
        ? chainOf(node.chainId).findLast((other) => placeOf(other) < placeOf(node))
        : undefined;
      // What the first job of a chain waited for is not repeated by the others.
      return [node.id, before ? [before.id] : [...new Set(waited)].filter((id) => id !== node.id)];
    }),
  );
}
