// One flow: its progress, its graph, and when each of its jobs waited and ran.
import { SluiceError } from "../../core/errors.ts";
import type { FlowNode } from "../../core/sql/flow-graph.ts";
import type { Flow } from "../../core/sql/flows.ts";
import { findFlow, flowGraph } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Bar } from "../parts/bar.tsx";
import { Card } from "../parts/card.tsx";
import { hiddenTypes } from "../parts/job-table.tsx";
import { count, counted } from "../parts/numbers.ts";
import { byName, Pager } from "../parts/pager.tsx";
import { Time } from "../parts/time.tsx";
import { isUuid } from "../search.ts";
import { Graph } from "./flow/graph.tsx";
import { Waterfall } from "./flow/waterfall.tsx";
import { FlowState, flowSegments } from "./flows.tsx";

/** The most jobs of a graph, and of a page of the table. */
const maxJobs = 200;

export const flow: Page = {
  path: "/flows/:id",
  section: "Flows",
  async render(request) {
    const id = request.param("id");
    if (!isUuid(id)) throw noSuchFlow(id);
    const before = request.query.get("before") ?? "";
    const after = isUuid(before) ? before : undefined;
    const [shown, found] = await Promise.all([
      request.db.run(findFlow(id)),
      request.db.run(
        flowGraph(id, { after, limit: maxJobs + 1, hiddenTypes: hiddenTypes(request.registry) }),
      ),
    ]);
    if (!shown) throw noSuchFlow(id);
    const nodes = found.slice(0, maxJobs);
    const hasMore = found.length > maxJobs;
    return {
      title: `Flow ${id.slice(-8)}`,
      crumbs: <a href="/flows">Flows</a>,
      facts: (
        <>
          <FlowState status={shown.status} />
          <span class="muted">
            started <Time at={shown.createdAt} now={request.now} />
          </span>
        </>
      ),
      tools:
        shown.status === "running" ? (
          <ActionForm
            request={request}
            action="cancelFlow"
            fields={{ id }}
            label="Cancel the flow"
            kind="danger"
            confirm="Cancel all jobs of this flow that have not started? Jobs that run are left to finish."
          />
        ) : undefined,
      body: (
        <>
          <Progress flow={shown} />
          <Card id="graph" title="Graph">
            {after || hasMore ? (
              <p class="pad muted">
                The graph is drawn for flows of at most {maxJobs} jobs. This one has {count(shown.total)}:
                they are in the table.
              </p>
            ) : (
              <Graph nodes={nodes} now={request.now} />
            )}
          </Card>
          <Card
            id="jobs"
            title="Jobs"
            note={<span class="muted small">{missingText(shown, nodes, after || hasMore)}</span>}
          >
            <Waterfall nodes={nodes} from={shown.createdAt} now={request.now} />
            <Pager request={request} next={hasMore ? (nodes.at(-1)?.id ?? null) : null} words={byName} />
          </Card>
        </>
      ),
    };
  },
};

function Progress({ flow: shown }: { flow: Flow }) {
  return (
    <Card
      id="progress"
      title="Progress"
      note={
        <span class="muted small">
          {count(shown.counts.completed)} of {count(shown.total)} completed
        </span>
      }
    >
      <div class="pad">
        <Bar name="Flow" segments={flowSegments(shown)} />
      </div>
    </Card>
  );
}

/** Jobs are removed when their time of retention is over. The flow's counts stay. */
function missingText({ total }: Flow, nodes: readonly FlowNode[], isPart: string | boolean): string {
  if (isPart) return `${counted(nodes.length, "job")} of ${count(total)} on this page`;
  return nodes.length < total
    ? `${count(total - nodes.length)} of ${counted(total, "job")} are no longer stored`
    : counted(total, "job");
}

function noSuchFlow(id: string): SluiceError {
  return new SluiceError("not_found", `there is no flow ${id}`);
}
