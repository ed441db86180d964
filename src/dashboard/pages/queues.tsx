// Queues: what is in them, and which are paused.
import { isCanary } from "../../core/alarms/alarm.ts";
import type { Books } from "../../core/sql/books.ts";
import { books, listPauses } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { Bar } from "../parts/bar.tsx";
import { segmentsOf, sumCounts } from "../parts/books.ts";
import { jobsUrl } from "../parts/links.tsx";
import { State } from "../parts/state.tsx";
import { Count, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

export const queues: Page = {
  path: "/queues",
  section: "Queues",
  async render(request) {
    const [rows, pauses] = await Promise.all([request.db.run(books()), request.db.run(listPauses())]);
    const byQueue = Map.groupBy(
      rows.filter((row) => !isCanary(row)),
      ({ queue }) => queue,
    );
    const pausedQueues = new Map(
      pauses.filter(({ kind }) => kind === "queue").map(({ name, since }) => [name, since]),
    );
    const ofTypes = request.registry.all().filter((definition) => !isCanary(definition));
    const names = [
      ...new Set([...ofTypes.map(({ queue }) => queue), ...byQueue.keys(), ...pausedQueues.keys()]),
    ].toSorted();
    const shown = names.map((queue) => ({
      queue,
      pausedSince: pausedQueues.get(queue),
      counts: sumCounts(byQueue.get(queue) ?? ([] as Books[])),
    }));
    return {
      title: "Queues",
      body: (
        <div class="card">
          <Table
            name="Queues"
            rows={shown}
            columns={[
              { title: "Queue", class: "nw", cell: ({ queue }) => <a href={jobsUrl({ queue })}>{queue}</a> },
              {
                title: "Jobs by state",
                class: "wide",
                cell: ({ queue, counts }) => <Bar name={queue} segments={segmentsOf(counts)} />,
              },
              {
                title: "Due",
                class: "n",
                cell: ({ counts }) => <Count value={counts.pending - counts.scheduled} />,
              },
              { title: "Later", class: "n hide-m", cell: ({ counts }) => <Count value={counts.scheduled} /> },
              { title: "Blocked", class: "n hide-m", cell: ({ counts }) => <Count value={counts.blocked} /> },
              {
                title: "Processing",
                class: "n hide-s",
                cell: ({ counts }) => <Count value={counts.leased} />,
              },
              { title: "Dead", class: "n", cell: ({ counts }) => <Count value={counts.dead} /> },
              {
                title: "State",
                class: "nw",
                cell: ({ pausedSince }) =>
                  pausedSince ? (
                    <>
                      <State shape="paused" word="paused" /> <Time at={pausedSince} now={request.now} />
                    </>
                  ) : (
                    <State shape="ok" word="runs" />
                  ),
              },
              {
                title: "Actions",
                isHidden: true,
                class: "n",
                cell: ({ queue, pausedSince }) => (
                  <ActionForm
                    request={request}
                    action={pausedSince ? "resumeQueue" : "pauseQueue"}
                    fields={{ queue }}
                    label={pausedSince ? "Resume" : "Pause"}
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
