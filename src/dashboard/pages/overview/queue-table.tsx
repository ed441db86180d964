// The queues of the overview: what is in each, how old it is, and how fast it goes.
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { Group, Snapshot } from "../../../core/snapshot.ts";
import type { Overview } from "../../../core/sql/overview.ts";
import { latestRate, rangeNames, seriesOf } from "../../history.ts";
import { Sparkline } from "../../parts/bar.tsx";
import { oldestOf, type ShownCounts, segmentsOf, sumCounts } from "../../parts/books.ts";
import { Card, Empty } from "../../parts/card.tsx";
import { queueUrl } from "../../parts/links.tsx";
import { count, counted, pausedText } from "../../parts/numbers.ts";
import { oldestColumn, stateColumns } from "../../parts/queue-columns.tsx";
import { State } from "../../parts/state.tsx";
import { Count, Table } from "../../parts/table.tsx";

export function QueueTable({ now, shown }: { now: Snapshot; shown: Overview }) {
  const byQueue = Map.groupBy(
    now.groups.filter((group) => !isCanary(group)),
    ({ queue }) => queue,
  );
  const rows = [...byQueue]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([queue, groups]) => ({
      queue,
      counts: sumCounts(groups),
      oldestSeconds: oldestOf(groups),
      notes: notesOf(queue, groups, { now, shown }),
    }));
  if (rows.length === 0) return <NoJobs />;
  const paused = shown.pauses.filter(({ kind }) => kind === "queue").length;
  const rangeName = rangeNames[shown.history.range];
  return (
    <Card
      id="queues"
      title="Queues"
      note={
        <>
          <span class="muted small">
            {counted(rows.length, "queue")}, {pausedText(paused)}
          </span>
          <Legend />
        </>
      }
    >
      <Table
        name="Queues"
        rows={rows}
        foot={<All rows={rows} rate={latestRate(seriesOf(shown.history).completed, shown.history)} />}
        columns={[
          { title: "Queue", class: "nw", cell: (row) => <Name {...row} /> },
          ...stateColumns,
          oldestColumn,
          {
            title: "Completed a minute",
            class: "n hide-m",
            cell: ({ queue }) => (
              <Count value={latestRate(seriesOf(shown.history, queue).completed, shown.history)} />
            ),
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

function All({ rows, rate }: { rows: readonly { counts: ShownCounts }[]; rate: number }) {
  const { pending, scheduled, blocked, leased, dead } = sumCounts(rows.map(({ counts }) => counts));
  return (
    <tfoot>
      <tr>
        <th scope="row">All</th>
        <td />
        <td class="n">{count(pending - scheduled)}</td>
        <td class="n hide-m">{count(scheduled)}</td>
        <td class="n hide-m">{count(blocked)}</td>
        <td class="n hide-s">{count(leased)}</td>
        <td class="n">{count(dead)}</td>
        <td class="hide-s" />
        <td class="n hide-m">{count(rate)}</td>
        <td class="hide-s" />
      </tr>
    </tfoot>
  );
}

function Name({ queue, notes }: { queue: string; notes: readonly string[] }) {
  return (
    <>
      <a href={queueUrl(queue)}>{queue}</a>
      {notes.map((note) => (
        <>
          {" "}
          <span class="chip is-warn">{note}</span>
        </>
      ))}
    </>
  );
}

/** Why a queue may stand still. */
function notesOf(
  queue: string,
  groups: readonly Group[],
  { now, shown }: { now: Snapshot; shown: Overview },
): string[] {
  const isPaused = shown.pauses.some(({ kind, name }) => kind === "queue" && name === queue);
  const broken = now.openBreakers.filter(({ type }) => groups.some((group) => group.type === type));
  const blocked = now.blockedKeys.find((entry) => entry.queue === queue)?.keys ?? 0;
  return [
    ...(isPaused ? ["paused"] : []),
    ...(broken.length > 0 ? [`breaker of ${broken.map(({ type }) => type).join(", ")} open`] : []),
    ...(blocked > 0 ? [counted(blocked, "blocked key")] : []),
  ];
}

/** What the colours of the bars mean. */
function Legend() {
  return (
    <span class="push row small muted">
      {segmentsOf(sumCounts([])).map(({ shape, word }) => (
        <State shape={shape} word={word} />
      ))}
    </span>
  );
}

function NoJobs() {
  return (
    <Empty
      title="No jobs yet"
      example={`curl -X POST -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  $SLUICE_URL/v1/jobs -d '{ "type": "echo", "payload": { "n": 1 } }'`}
    >
      Each queue that has had a job is listed here: what waits in it, how old it is, and how fast it goes.
    </Empty>
  );
}
