// The table of jobs that several pages show.
import type { ListedJob } from "../../core/sql/shown-jobs.ts";
import type { JobRegistry } from "../../jobs/registry.ts";
import type { PageRequest } from "../page.ts";
import { JobId } from "./links.tsx";
import { duration, wholeSeconds } from "./numbers.ts";
import { State, shapeOfJob } from "./state.tsx";
import { None, Table } from "./table.tsx";
import { Age } from "./time.tsx";

/** How much of a payload a row shows. */
export const rowTextLength = 200;

/** The types whose payloads no page shows. */
export function hiddenTypes(registry: JobRegistry): string[] {
  return registry
    .all()
    .filter(({ hidePayload }) => hidePayload)
    .map(({ type }) => type);
}

export function JobTable({ request, jobs }: { request: PageRequest; jobs: readonly ListedJob[] }) {
  const { now } = request;
  return (
    <Table
      name="Jobs"
      isNameless
      rows={jobs}
      columns={[
        { title: "State", cell: (job) => <State {...shapeOfJob(job, now)} isShort /> },
        {
          title: "Type and payload",
          class: "two-line",
          cell: ({ id, type, payloadText }) => (
            <>
              <a href={`/jobs/${id}`}>{type}</a>
              {payloadText === null ? (
                <span class="zero">hidden</span>
              ) : (
                <code class="muted">{payloadText}</code>
              )}
            </>
          ),
        },
        { title: "Id", class: "hide-m", cell: ({ id }) => <JobId id={id} /> },
        {
          title: "Attempt",
          class: "n hide-s",
          cell: ({ attempts, maxAttempts }) => (attempts === 0 ? <None /> : `${attempts} of ${maxAttempts}`),
        },
        { title: "What next", class: "nw hide-s", cell: (job) => <WhatNext job={job} now={now} /> },
        { title: "Age", class: "n", cell: ({ createdAt }) => <Age at={createdAt} now={now} /> },
      ]}
    />
  );
}

function WhatNext({ job, now }: { job: ListedJob; now: Date }) {
  const secondsSince = (at: Date) => Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000));
  switch (job.status) {
    case "pending": {
      if (job.scheduledAt <= now) return <>due for {wholeSeconds(secondsSince(job.scheduledAt))}</>;
      const text = wholeSeconds(Math.ceil((job.scheduledAt.getTime() - now.getTime()) / 1000));
      return <>{job.attempts > 0 ? `retries in ${text}` : `in ${text}`}</>;
    }
    case "processing":
      return <>{job.startedAt ? `since ${wholeSeconds(secondsSince(job.startedAt))}` : "runs"}</>;
    case "completed":
      return job.completedAt && job.startedAt ? (
        <>took {duration(job.completedAt.getTime() - job.startedAt.getTime())}</>
      ) : (
        <None />
      );
    case "dead":
      return <span class="t-dead">{job.deadReason}</span>;
    case "blocked":
      return <>waits for others</>;
    default:
      return <None text="–" />;
  }
}
