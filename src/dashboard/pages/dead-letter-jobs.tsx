// Dead letters one by one, the last death first: all, or those of a group.

import { countDead, listShownDeadLetters } from "../../core/sql/index.ts";
import type { DeathPosition, ShownDeadLetter } from "../../core/sql/list.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm, actionsColumn } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { JobId } from "../parts/links.tsx";
import { counted } from "../parts/numbers.ts";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { isUuid } from "../search.ts";
import { type Filter, openerId, parseDeadSearch, startUrl } from "./dead-letters/filter.ts";
import { SearchForm } from "./dead-letters/search-form.tsx";
import { Views } from "./dead-letters/views.tsx";

const path = "/dead-letters/jobs";

export const deadLetterJobs: Page = {
  path,
  section: "Dead letters",
  async render(request) {
    const search = parseDeadSearch(request.query);
    const { filter } = search;
    const [found, { dead }] = await Promise.all([
      request.db.run(listShownDeadLetters({ ...filter, before: beforeOf(request), limit: pageSize + 1 })),
      request.db.run(countDead(filter)),
    ]);
    const { shown, next } = takePage(found, ({ position }) => `${position.diedMicros}.${position.jobId}`);
    return {
      title: "Dead letters",
      crumbs: <a href="/dead-letters">All groups</a>,
      facts: <span class="muted">{counted(dead, "job")} in this list</span>,
      tools: <Tools request={request} filter={filter} dead={dead} />,
      body: (
        <div class="card">
          <SearchForm request={request} path={path} search={search} />
          {shown.length === 0 ? (
            <Empty title="No dead letter fits this search">
              A job that fails for good is listed here, until it is replayed or discarded.
            </Empty>
          ) : (
            <DeadTable request={request} rows={shown} />
          )}
          <Pager request={request} next={next} />
        </div>
      ),
    };
  },
};

/** A cursor that cannot be read is the first page. */
function beforeOf({ query }: PageRequest): DeathPosition | undefined {
  const [diedMicros = "", jobId = ""] = (query.get("before") ?? "").split(".");
  return /^\d{1,18}$/.test(diedMicros) && isUuid(jobId) ? { diedMicros, jobId } : undefined;
}

function Tools({ request, filter, dead }: { request: PageRequest; filter: Filter; dead: number }) {
  const link = (action: string) => ({
    id: openerId(action, filter),
    href: startUrl(action, filter, filter, "jobs"),
  });
  return (
    <>
      {request.viewer.mayChange && dead > 0 ? (
        <>
          <a class="btn is-quiet" {...link("discard")}>
            Discard {counted(dead, "job")}
          </a>
          <a class="btn" {...link("replay")}>
            Replay {counted(dead, "job")}
          </a>
        </>
      ) : null}
      <Views filter={filter} current="jobs" />
    </>
  );
}

function DeadTable({ request, rows }: { request: PageRequest; rows: readonly ShownDeadLetter[] }) {
  return (
    <Table
      name="Dead letters"
      isNameless
      rows={rows}
      columns={[
        {
          title: "Error, type and reason",
          class: "two-line",
          cell: ({ job: { id, type, deadReason, errors } }) => (
            <>
              <a href={`/jobs/${id}`}>{errors.at(-1)?.message ?? "It did not die of an error"}</a>
              <span class="muted small">
                {type}, {deadReason}
              </span>
            </>
          ),
        },
        { title: "Id", class: "nw", cell: ({ job: { id } }) => <JobId id={id} /> },
        {
          title: "Attempts",
          class: "n hide-s",
          cell: ({ job: { attempts, maxAttempts } }) => `${attempts} of ${maxAttempts}`,
        },
        { title: "Died", class: "n", cell: ({ diedAt }) => <Time at={diedAt} now={request.now} /> },
        ...actionsColumn<ShownDeadLetter>(request, ({ job: { id } }) => (
          <ActionForm request={request} action="replayDeadLetter" fields={{ id }} label="Replay" />
        )),
      ]}
    />
  );
}
