// One flow: its progress and its jobs, in their order.
import { SluiceError } from "../../core/errors.ts";
import { findFlow, listFlowJobs } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Bar } from "../parts/bar.tsx";
import { Card } from "../parts/card.tsx";
import { JobId } from "../parts/links.tsx";
import { count } from "../parts/numbers.ts";
import { JobState } from "../parts/state.tsx";
import { Table } from "../parts/table.tsx";
import { isUuid } from "../search.ts";
import { FlowState, flowSegments } from "./flows.tsx";

const maxJobs = 100;

export const flow: Page = {
  path: "/flows/:id",
  section: "Flows",
  async render(request) {
    const id = request.param("id");
    if (!isUuid(id)) throw noSuchFlow(id);
    const [shown, jobs] = await Promise.all([
      request.db.run(findFlow(id)),
      request.db.run(listFlowJobs(id, { limit: maxJobs })),
    ]);
    if (!shown) throw noSuchFlow(id);
    return {
      title: `Flow ${id.slice(-8)}`,
      crumbs: <a href="/flows">Flows</a>,
      facts: <FlowState status={shown.status} />,
      tools:
        shown.status === "running" ? (
          <ActionForm
            request={request}
            action="cancelFlow"
            fields={{ id }}
            label="Cancel the flow"
            confirm="Cancel all jobs of this flow that have not started?"
          />
        ) : undefined,
      body: (
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
          <Table
            name="Jobs of the flow"
            isNameless
            rows={jobs}
            columns={[
              { title: "State", cell: (job) => <JobState job={job} now={request.now} /> },
              {
                title: "Type",
                class: "wide",
                cell: ({ id: jobId, type }) => <a href={`/jobs/${jobId}`}>{type}</a>,
              },
              { title: "Id", cell: ({ id: jobId }) => <JobId id={jobId} /> },
            ]}
          />
        </Card>
      ),
    };
  },
};

function noSuchFlow(id: string): SluiceError {
  return new SluiceError("not_found", `there is no flow ${id}`);
}
