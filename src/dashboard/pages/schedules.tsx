// Schedules: in words, with their next slot.
import cronstrue from "cronstrue";
import { listSchedules } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { JobId, jobsUrl } from "../parts/links.tsx";
import { byName, Pager, pageSize, takePage } from "../parts/pager.tsx";
import { State } from "../parts/state.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

export const schedules: Page = {
  path: "/schedules",
  section: "Schedules",
  async render(request) {
    const after = request.query.get("before") ?? undefined;
    const found = await request.db.run(listSchedules({ after, limit: pageSize + 1 }));
    const { shown, next } = takePage(found, ({ name }) => name);
    if (found.length === 0) return { title: "Schedules", body: <NoSchedules /> };
    return {
      title: "Schedules",
      body: (
        <div class="card">
          <Table
            name="Schedules"
            rows={shown}
            columns={[
              { title: "Schedule", class: "nw", cell: ({ name }) => name },
              {
                title: "When",
                class: "wide",
                cell: ({ cron, timeZone }) => (
                  <>
                    <span title={cron}>{cronInWords(cron)}</span> <span class="muted">{timeZone}</span>
                  </>
                ),
              },
              { title: "Type", class: "hide-s", cell: ({ type }) => <a href={jobsUrl({ type })}>{type}</a> },
              {
                title: "Next",
                class: "n",
                cell: ({ paused, nextSlots: [slot] }) =>
                  slot && !paused ? <Time at={slot} now={request.now} /> : <None />,
              },
              {
                title: "Last job",
                class: "hide-m",
                cell: ({ lastJobId }) => (lastJobId ? <JobId id={lastJobId} /> : <None />),
              },
              {
                title: "State",
                class: "nw",
                cell: ({ paused }) =>
                  paused ? <State shape="paused" word="paused" /> : <State shape="ok" word="runs" />,
              },
              {
                title: "Actions",
                isHidden: true,
                class: "n",
                cell: ({ name, paused }) => (
                  <div class="row">
                    <ActionForm request={request} action="runSchedule" fields={{ name }} label="Run now" />
                    <ActionForm
                      request={request}
                      action={paused ? "resumeSchedule" : "pauseSchedule"}
                      fields={{ name }}
                      label={paused ? "Resume" : "Pause"}
                    />
                  </div>
                ),
              },
            ]}
          />
          <Pager request={request} next={next} words={byName} />
        </div>
      ),
    };
  },
};

/** "At 09:00, Monday through Friday". An expression that it does not understand stays as it is. */
export function cronInWords(cron: string): string {
  try {
    return cronstrue.toString(cron, { use24HourTimeFormat: true });
  } catch {
    return cron;
  }
}

function NoSchedules() {
  return (
    <Empty
      title="No schedules yet"
      example={`curl -X PUT -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  $SLUICE_URL/v1/schedules/nightly -d '{ "cron": "0 2 * * *", "type": "echo" }'`}
    >
      A schedule makes a job at the times of a cron expression. Each one is listed here with its next times.
    </Empty>
  );
}
