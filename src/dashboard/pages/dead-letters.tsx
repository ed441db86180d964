// Dead letters: jobs that will not run again, newest first.
import { listShownJobs } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { rowTextLength } from "../parts/job-table.tsx";
import { JobId, jobsUrl } from "../parts/links.tsx";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { None, Table } from "../parts/table.tsx";
import { Age } from "../parts/time.tsx";
import { parseSearch } from "../search.ts";

export const deadLetters: Page = {
  path: "/dead-letters",
  section: "Dead letters",
  async render(request) {
    const { filter } = parseSearch(request.query);
    const page = await request.db.run(
      listShownJobs({ ...filter, status: "dead", limit: pageSize + 1, textLength: rowTextLength }),
    );
    const { shown, next } = takePage(page.jobs, ({ id }) => id);
    if (page.jobs.length === 0 && page.next === null)
      return {
        title: "Dead letters",
        body: (
          <Empty title="No dead letters">
            A job that fails for good is listed here, with its error. You can replay it or discard it.
          </Empty>
        ),
      };
    return {
      title: "Dead letters",
      body: (
        <div class="card">
          <Table
            name="Dead letters"
            rows={shown}
            columns={[
              { title: "Id", class: "nw", cell: ({ id }) => <JobId id={id} /> },
              { title: "Type", class: "nw", cell: ({ type }) => <a href={jobsUrl({ type })}>{type}</a> },
              { title: "Reason", class: "nw t-dead", cell: ({ deadReason }) => deadReason ?? <None /> },
              {
                title: "Last error",
                class: "two-line",
                cell: ({ id, errors }) => (
                  <a href={`/jobs/${id}`}>{errors.at(-1)?.message ?? "no attempt has failed"}</a>
                ),
              },
              { title: "Age", class: "n", cell: ({ createdAt }) => <Age at={createdAt} now={request.now} /> },
              {
                title: "Actions",
                isHidden: true,
                class: "n",
                cell: ({ id }) => (
                  <ActionForm request={request} action="replayDeadLetter" fields={{ id }} label="Replay" />
                ),
              },
            ]}
          />
          <Pager request={request} next={next ?? page.next} />
        </div>
      ),
    };
  },
};
