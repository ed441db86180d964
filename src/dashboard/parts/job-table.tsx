// The table of jobs that several pages show.
import type { JobStatus } from "../../core/job.ts";
import type { ListedJob } from "../../core/sql/shown-jobs.ts";
import type { JobRegistry } from "../../jobs/registry.ts";
import type { PageRequest } from "../page.ts";
import { JobId } from "./links.tsx";
import { duration, wholeSeconds } from "./numbers.ts";
import { State, shapeOfJob } from "./state.tsx";
import { type Column, None, Table } from "./table.tsx";
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

interface Props {
  request: PageRequest;
  jobs: readonly ListedJob[];
}

/** With a box for each job that can be cancelled or replayed. A viewer gets the table alone. */
export function SelectableJobs({ request, jobs }: Props) {
  if (!request.viewer.mayChange) return <JobTable request={request} jobs={jobs} />;
  return (
    <form class="picks" method="post" action="/actions/replayJobs">
      <input type="hidden" name="to" value={request.url.pathname + request.url.search} />
      <JobTable request={request} jobs={jobs} isSelectable />
      <div class="bulk row">
        <span>
          <span class="picked" /> selected
        </span>
        <button class="btn" type="submit">
          Replay the dead
        </button>
        <button
          class="btn is-danger"
          type="submit"
          formaction="/actions/cancelJobs"
          data-confirm="Cancel the selected jobs? They will never run."
        >
          Cancel the waiting
        </button>
      </div>
    </form>
  );
}

const selectable: readonly JobStatus[] = ["pending", "blocked", "dead"];

function SelectBox({ job: { id, type, status } }: { job: ListedJob }) {
  if (!selectable.includes(status)) return null;
  return <input type="checkbox" name="id" value={id} aria-label={`Select ${type} ${id.slice(-8)}`} />;
}

export function JobTable({ request, jobs, isSelectable }: Props & { isSelectable?: boolean }) {
  const { now } = request;
  const select: Column<ListedJob> = {
    title: "Select",
    isHidden: true,
    class: "fit",
    cell: (job) => <SelectBox job={job} />,
  };
  return (
    <Table
      name="Jobs"
      isNameless
      rows={jobs}
      columns={[
        ...(isSelectable ? [select] : []),
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

type NextOfJob = Pick<
  ListedJob,
  "status" | "attempts" | "scheduledAt" | "startedAt" | "completedAt" | "deadReason"
>;

export function WhatNext({ job, now }: { job: NextOfJob; now: Date }) {
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
