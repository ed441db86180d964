// Types: what this deployment can run, with the limits and the circuit breaker of each type.
import { isCanary } from "../../core/alarms/alarm.ts";
import { books, listBreakers, listPauses } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { sumCounts } from "../parts/books.ts";
import { Empty } from "../parts/card.tsx";
import { jobsUrl } from "../parts/links.tsx";
import { wholeSeconds } from "../parts/numbers.ts";
import { State } from "../parts/state.tsx";
import { Count, Table } from "../parts/table.tsx";

export const types: Page = {
  path: "/types",
  section: "Types",
  async render(request) {
    const [rows, pauses, breakers] = await Promise.all([
      request.db.run(books()),
      request.db.run(listPauses()),
      request.db.run(listBreakers()),
    ]);
    const paused = new Set(pauses.filter(({ kind }) => kind === "type").map(({ name }) => name));
    const open = new Set(breakers.map(({ type }) => type));
    const shown = request.registry
      .all()
      .filter((definition) => !isCanary(definition))
      .map((definition) => ({
        ...definition,
        isPaused: paused.has(definition.type),
        isOpen: open.has(definition.type),
        counts: sumCounts(rows.filter(({ type }) => type === definition.type)),
      }));
    if (shown.length === 0)
      return { title: "Types", body: <Empty title="No types yet">Define one with defineJob.</Empty> };
    return {
      title: "Types",
      body: (
        <div class="card">
          <Table
            name="Types"
            rows={shown}
            columns={[
              { title: "Type", class: "wide", cell: ({ type }) => <a href={jobsUrl({ type })}>{type}</a> },
              { title: "Queue", cell: ({ queue }) => <a href={jobsUrl({ queue })}>{queue}</a> },
              { title: "Runs in", class: "hide-m nw", cell: ({ work }) => workNames[work.kind] },
              {
                title: "Time-out",
                class: "n hide-m",
                cell: ({ timeoutSeconds }) => wholeSeconds(timeoutSeconds),
              },
              { title: "Waiting", class: "n", cell: ({ counts }) => <Count value={counts.pending} /> },
              {
                title: "Processing",
                class: "n hide-s",
                cell: ({ counts }) => <Count value={counts.leased} />,
              },
              {
                title: "Completed",
                class: "n hide-s",
                cell: ({ counts }) => <Count value={counts.completed} />,
              },
              { title: "Dead", class: "n", cell: ({ counts }) => <Count value={counts.dead} /> },
              { title: "State", class: "nw", cell: (row) => <TypeState {...row} /> },
              {
                title: "Actions",
                isHidden: true,
                class: "n",
                cell: ({ type, isPaused }) => (
                  <ActionForm
                    request={request}
                    action={isPaused ? "resumeJobType" : "pauseJobType"}
                    fields={{ type }}
                    label={isPaused ? "Resume" : "Pause"}
                  />
                ),
              },
            ]}
          />
        </div>
      ),
    };
  },
};

const workNames = { single: "the Worker", batch: "the Worker, in batches", pulled: "pullers" };

function TypeState({ isPaused, isOpen }: { isPaused: boolean; isOpen: boolean }) {
  if (isPaused) return <State shape="paused" word="paused" />;
  if (isOpen) return <State shape="alarm" word="breaker is open" />;
  return <State shape="ok" word="runs" />;
}
