// The queues of the overview: what is in each, how old it is, and how fast it goes.
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { Group, Snapshot } from "../../../core/snapshot.ts";
import type { Overview } from "../../../core/sql/overview.ts";
import { rangeNames, seriesOf } from "../../history.ts";
import { Bar, Sparkline } from "../../parts/bar.tsx";
import { segmentsOf, sumCounts } from "../../parts/books.ts";
import { Card, Empty } from "../../parts/card.tsx";
import { jobsUrl } from "../../parts/links.tsx";
import { count, counted, wholeSeconds } from "../../parts/numbers.ts";
import { Count, None, Table } from "../../parts/table.tsx";

export function QueueTable({ now, shown }: { now: Snapshot; shown: Overview }) {
  const byQueue = Map.groupBy(
    now.groups.filter((group) => !isCanary(group)),
    ({ queue }) => queue,
  );
  const rows = [...byQueue]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([queue, groups]) => toRow(queue, groups));
  if (rows.length === 0)
    return <Empty title="No queues yet">A queue is listed here once it has had a job.</Empty>;
  const rangeName = rangeNames[shown.history.range];
  return (
    <Card id="queues" title="Queues" note={<span class="muted small">{counted(rows.length, "queue")}</span>}>
      <Table
        name="Queues"
        rows={rows}
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
          { title: "Processing", class: "n hide-s", cell: ({ counts }) => <Count value={counts.leased} /> },
          { title: "Dead", class: "n", cell: (row) => <Dead {...row} /> },
          {
            title: "Oldest due",
            class: "n",
            cell: ({ oldestSeconds }) => (oldestSeconds === null ? <None /> : wholeSeconds(oldestSeconds)),
          },
          {
            title: `Last ${rangeName}`,
            class: "hide-s",
            cell: ({ queue }) => (
              <Sparkline
                label={`${queue}: completed, last ${rangeName}`}
                values={seriesOf(shown.history, queue).completed}
              />
            ),
          },
        ]}
      />
    </Card>
  );
}

function Dead({ queue, counts }: { queue: string; counts: { dead: number } }) {
  if (counts.dead === 0) return <Count value={0} />;
  return (
    <a class="t-dead strong" href={jobsUrl({ queue, status: "dead" })}>
      {count(counts.dead)}
    </a>
  );
}

function toRow(queue: string, groups: readonly Group[]) {
  const ages = groups.flatMap(({ oldestDueSeconds }) =>
    oldestDueSeconds === null ? [] : [oldestDueSeconds],
  );
  const oldestSeconds = ages.length === 0 ? null : Math.floor(Math.max(...ages));
  return { queue, counts: sumCounts(groups), oldestSeconds };
}
