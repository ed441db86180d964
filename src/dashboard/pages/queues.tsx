// Queues: what is in them, how old it is, and what holds them up.
import { isCanary } from "../../core/alarms/alarm.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import { listPauses, snapshot } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { ActionForm, actionsColumn } from "../parts/action-form.tsx";
import { oldestOf, type ShownCounts, sumCounts } from "../parts/books.ts";
import { Empty } from "../parts/card.tsx";
import { queueUrl } from "../parts/links.tsx";
import { counted, pausedText } from "../parts/numbers.ts";
import { oldestColumn, stateColumns } from "../parts/queue-columns.tsx";
import { State } from "../parts/state.tsx";
import { Count, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

interface ListedQueue {
  queue: string;
  counts: ShownCounts;
  oldestSeconds: number | null;
  blockedKeys: number;
  pausedSince: Date | undefined;
}

export const queues: Page = {
  path: "/queues",
  section: "Queues",
  async render(request) {
    const [now, pauses] = await Promise.all([request.db.run(snapshot()), request.db.run(listPauses())]);
    const pausedSince = new Map(
      pauses.filter(({ kind }) => kind === "queue").map(({ name, since }) => [name, since]),
    );
    const rows = toRows(request, now, pausedSince);
    return {
      title: "Queues",
      facts: <span class="muted">{`${counted(rows.length, "queue")}, ${pausedText(pausedSince.size)}`}</span>,
      body:
        rows.length === 0 ? (
          <Empty title="No queues yet">
            A queue is there as soon as a type of the deployment names it, or a job is enqueued into it.
          </Empty>
        ) : (
          <div class="card">
            <QueueTable request={request} rows={rows} />
          </div>
        ),
    };
  },
};

/** A queue exists if the deployment defines it or a registered type names it, if it ever had a job, or if it is paused. */
function toRows(
  { registry }: PageRequest,
  now: Snapshot,
  pausedSince: ReadonlyMap<string, Date>,
): ListedQueue[] {
  const byQueue = Map.groupBy(
    now.groups.filter((group) => !isCanary(group)),
    ({ queue }) => queue,
  );
  const names = new Set([...registry.queues, ...byQueue.keys(), ...pausedSince.keys()]);
  return [...names].toSorted().map((queue) => ({
    queue,
    counts: sumCounts(byQueue.get(queue) ?? []),
    oldestSeconds: oldestOf(byQueue.get(queue) ?? []),
    blockedKeys: now.blockedKeys.find((entry) => entry.queue === queue)?.keys ?? 0,
    pausedSince: pausedSince.get(queue),
  }));
}

function QueueTable({ request, rows }: { request: PageRequest; rows: readonly ListedQueue[] }) {
  return (
    <Table
      name="Queues"
      rows={rows}
      columns={[
        { title: "Queue", class: "nw", cell: ({ queue }) => <a href={queueUrl(queue)}>{queue}</a> },
        ...stateColumns,
        {
          title: "Blocked keys",
          class: "n hide-m",
          cell: ({ blockedKeys }) => <Count value={blockedKeys} />,
        },
        oldestColumn,
        {
          title: "State",
          class: "nw",
          cell: ({ pausedSince }) => <QueueState pausedSince={pausedSince} now={request.now} />,
        },
        ...actionsColumn<ListedQueue>(request, ({ queue, pausedSince }) => (
          <PauseForm request={request} queue={queue} isPaused={pausedSince !== undefined} />
        )),
      ]}
    />
  );
}

export function QueueState({ pausedSince, now }: { pausedSince: Date | null | undefined; now: Date }) {
  if (!pausedSince) return <State shape="ok" word="runs" isShort />;
  return (
    <>
      <State shape="paused" word="paused" /> <Time at={pausedSince} now={now} />
    </>
  );
}

export function PauseForm({
  request,
  queue,
  isPaused,
}: {
  request: PageRequest;
  queue: string;
  isPaused: boolean;
}) {
  return (
    <ActionForm
      request={request}
      action={isPaused ? "resumeQueue" : "pauseQueue"}
      fields={{ queue }}
      label={isPaused ? "Resume" : "Pause"}
    />
  );
}
