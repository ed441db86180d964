// One queue: its depth by priority, its charts, the keys with the most jobs, and the keys that stand still.
import { name as queueName } from "../../contract/jobs.ts";
import { SluiceError } from "../../core/errors.ts";
import type { History } from "../../core/history.ts";
import { listBlockedKeys, queueNumbers, readHistory } from "../../core/sql/index.ts";
import type { PriorityNumbers, QueueNumbers } from "../../core/sql/queue-numbers.ts";
import type { Page, PageRequest } from "../page.ts";
import { Bar } from "../parts/bar.tsx";
import { segmentsOf } from "../parts/books.ts";
import { Card, Definitions } from "../parts/card.tsx";
import { Charts, Ranges, rangeOf } from "../parts/history-charts.tsx";
import { jobsUrl } from "../parts/links.tsx";
import { count, counted, wholeSeconds } from "../parts/numbers.ts";
import { pageSize } from "../parts/pager.tsx";
import { Count, Table } from "../parts/table.tsx";
import { BlockedKeys, positionOf } from "./queue/blocked-keys.tsx";
import { TopKeys } from "./queue/top-keys.tsx";
import { PauseForm, QueueState } from "./queues.tsx";

/** Queues with series of their own. */
const maxQueues = 100;

export const queue: Page = {
  path: "/queues/:queue",
  section: "Queues",
  async render(request) {
    const name = request.param("queue");
    if (!queueName.safeParse(name).success) throw noSuchQueue(name);
    const types = request.registry.all().filter((definition) => definition.queue === name);
    const [numbers, blocked, history] = await Promise.all([
      request.db.run(queueNumbers(name)),
      request.db.run(listBlockedKeys(name, { after: positionOf(request), limit: pageSize + 1 })),
      request.db.run(readHistory({ range: rangeOf(request), queues: maxQueues })),
    ]);
    const { priorities, pausedSince, policy } = numbers;
    if (types.length === 0 && priorities.length === 0 && pausedSince === null) throw noSuchQueue(name);
    return {
      title: name,
      crumbs: <a href="/queues">Queues</a>,
      facts: <QueueState pausedSince={pausedSince} now={request.now} />,
      tools: (
        <div class="row">
          <Ranges request={request} range={history.range} />
          <PauseForm request={request} queue={name} isPaused={pausedSince !== null} />
        </div>
      ),
      body: (
        <>
          <QueueCharts name={name} numbers={numbers} history={history} />
          <Priorities name={name} numbers={numbers} />
          <BlockedKeys
            request={request}
            found={blocked}
            total={numbers.blockedKeys}
            blocks={policy?.onDead !== "pass"}
          />
          <div class="two">
            <TopKeys keys={numbers.keys} />
            <Rules name={name} request={request} policy={policy} />
          </div>
        </>
      ),
    };
  },
};

function noSuchQueue(name: string): SluiceError {
  return new SluiceError("not_found", `there is no queue "${name}"`);
}

interface QueueChartsProps {
  name: string;
  numbers: QueueNumbers;
  history: History;
}

function QueueCharts({ name, numbers, history }: QueueChartsProps) {
  if (history.queues.some((series) => series.queue === name)) {
    const dueNow = numbers.priorities.reduce((sum, { pending, scheduled }) => sum + pending - scheduled, 0);
    return <Charts history={history} dueNow={dueNow} queue={name} />;
  }
  return (
    <p class="card pad muted">
      {numbers.priorities.length === 0
        ? "No job was ever enqueued here, so there is nothing to draw."
        : `Only the ${maxQueues} queues with the most jobs have charts of their own, and this is not one of them.`}
    </p>
  );
}

function Priorities({ name, numbers }: { name: string; numbers: QueueNumbers }) {
  const { priorities } = numbers;
  return (
    <Card
      id="priorities"
      title="Depth by priority"
      note={
        <>
          <span class="muted small">{ageText(numbers)}</span>
          <a class="push small" href={jobsUrl({ queue: name })}>
            Jobs of this queue
          </a>
        </>
      }
    >
      {priorities.length === 0 ? (
        <p class="pad muted">
          It has never had a job. A job names its queue when it is enqueued, or its type does.
        </p>
      ) : (
        <Table
          name="Depth by priority"
          rows={priorities}
          columns={[
            { title: "Priority", class: "nw", cell: ({ priority }) => String(priority) },
            {
              title: "Jobs by state",
              class: "wide",
              cell: (row) => (
                <Bar name={`Priority ${row.priority}`} segments={segmentsOf({ ...row, failed: 0 })} />
              ),
            },
            {
              title: "Due",
              class: "n",
              cell: ({ pending, scheduled }) => <Count value={pending - scheduled} />,
            },
            number("Later", "scheduled"),
            number("Blocked", "blocked"),
            number("Processing", "leased"),
            number("Dead", "dead"),
            number("Completed", "completed"),
          ]}
        />
      )}
    </Card>
  );
}

function ageText({ priorities, oldestDueSeconds: seconds }: QueueNumbers): string {
  if (seconds !== null) return `the oldest due job has waited ${wholeSeconds(Math.floor(seconds))}`;
  const isWaiting = priorities.some(({ pending, scheduled }) => pending > scheduled);
  return isWaiting ? "the due jobs wait for others of their keys" : "nothing is due";
}

function number(title: string, field: Exclude<keyof PriorityNumbers, "priority">) {
  return {
    title,
    class: field === "dead" ? "n" : "n hide-s",
    cell: (row: PriorityNumbers) => <Count value={row[field]} />,
  };
}

interface RulesProps {
  name: string;
  request: PageRequest;
  policy: QueueNumbers["policy"];
}

/** What the deployment says about the queue. */
function Rules({ name, request, policy }: RulesProps) {
  const types = request.registry.all().filter((definition) => definition.queue === name);
  const { onDead, concurrency, secondsApart } = policy ?? request.registry.policyOf(name);
  return (
    <Card id="rules" title="Rules" note={<span class="muted small">as the deployment has them</span>}>
      <Definitions
        entries={[
          [
            "Types",
            types.length === 0
              ? "no type of the deployment names it"
              : types.map(({ type }) => type).join(", "),
          ],
          [
            "A dead job",
            onDead === "block"
              ? "stops the next jobs of its partition key"
              : "lets the next jobs of its key pass",
          ],
          [
            "Of a fair key",
            concurrency === null
              ? "any number of jobs run at one time"
              : `${counted(concurrency, "job")} at most run at one time`,
          ],
          ["Starts", secondsApart === null ? undefined : `${count(secondsApart)} s apart for each fair key`],
        ]}
      />
    </Card>
  );
}
