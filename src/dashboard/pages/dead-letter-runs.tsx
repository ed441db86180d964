// Runs over dead letters: all of them, and one with its progress.
import { SluiceError } from "../../core/errors.ts";
import { findDeadRun, listDeadRuns } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { Card, Code, Definitions, Empty } from "../parts/card.tsx";
import { JobId } from "../parts/links.tsx";
import { count } from "../parts/numbers.ts";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { Outcomes } from "./dead-letters/outcomes.tsx";
import { describeRun, nameOfRun, RunCard, RunTable } from "./dead-letters/runs.tsx";

/** Always fits a bigint. */
const position = /^[1-9]\d{0,17}$/;

export const deadLetterRuns: Page = {
  path: "/dead-letters/runs",
  section: "Dead letters",
  async render(request) {
    const cursor = request.query.get("before") ?? "";
    const before = position.test(cursor) ? cursor : undefined;
    const found = await request.db.run(listDeadRuns({ before, limit: pageSize + 1 }));
    const { shown, next } = takePage(found, ({ id }) => id);
    return {
      title: "Dead letters",
      crumbs: <a href="/dead-letters">All groups</a>,
      facts: <span class="muted">runs that replayed or discarded many at once</span>,
      body:
        found.length === 0 ? (
          <Empty title="No runs yet">
            When you replay or discard a group of dead letters, the run is listed here with its progress.
          </Empty>
        ) : (
          <div class="card">
            <RunTable request={request} runs={shown} />
            <Pager request={request} next={next} />
          </div>
        ),
    };
  },
};

export const deadLetterRun: Page = {
  path: "/dead-letters/runs/:run",
  section: "Dead letters",
  async render(request) {
    const id = request.param("run");
    const run = position.test(id) ? await request.db.run(findDeadRun(id)) : null;
    if (!run) throw new SluiceError("not_found", `there is no run ${id}`);
    const { now } = request;
    return {
      title: nameOfRun(run),
      crumbs: <a href="/dead-letters/runs">All runs</a>,
      body: (
        <>
          <RunCard request={request} run={run} />
          <Outcomes run={run} />
          <Card id="run" title="What it does">
            <Definitions
              entries={[
                ["Jobs", describeRun(run)],
                ["That died by", <Time at={run.until} now={now} />],
                ["At most", run.maxJobs === null ? "all that match" : count(run.maxJobs)],
                ["Rate", run.perMinute === null ? "as fast as it goes" : `${count(run.perMinute)} a minute`],
                ["Why", run.note ?? "not said"],
                ["By", run.actor],
                ["Started", <Time at={run.startedAt} now={now} />],
                ["Ended", run.endedAt ? <Time at={run.endedAt} now={now} /> : "not yet"],
              ]}
            />
            {run.patch ? <Code label="Payload patch" text={JSON.stringify(run.patch, null, 2)} /> : null}
          </Card>
          {run.skips.length > 0 ? (
            <Card
              id="skips"
              title="Skipped"
              note={<span class="muted small">the first {run.skips.length}</span>}
            >
              <Table
                name="Skipped jobs"
                rows={run.skips}
                columns={[
                  { title: "Job", class: "nw", cell: ({ jobId }) => <JobId id={jobId} /> },
                  { title: "Why", class: "wide", cell: ({ reason }) => reason },
                ]}
              />
            </Card>
          ) : null}
        </>
      ),
    };
  },
};
