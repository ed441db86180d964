// Overview: how things are, in one sentence, four numbers, three charts and a table of queues.
import { isCanary } from "../../core/alarms/alarm.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import type { Alarms } from "../../core/sql/alarms.ts";
import { listSchedules, readAlarms, recentMinutes, snapshot } from "../../core/sql/index.ts";
import { together } from "../../core/sql/statement.ts";
import { historyOf } from "../history.ts";
import type { Page, PageRequest } from "../page.ts";
import { sumCounts } from "../parts/books.ts";
import { Figures } from "../parts/figures.tsx";
import { absolute, count, counted, wholeSeconds } from "../parts/numbers.ts";
import { urlWith } from "../parts/pager.tsx";
import { Charts } from "./overview/charts.tsx";
import { NextSchedules } from "./overview/next-schedules.tsx";
import { QueueTable } from "./overview/queue-table.tsx";
import { SentenceOfTruth } from "./overview/sentence-of-truth.tsx";
import { Rounds } from "./workers.tsx";

/** In minutes, by the parameter `range`. */
const ranges = { "30m": 30, "1h": 60 } as const;
type Range = keyof typeof ranges;
const rangeNames: Record<Range, string> = { "30m": "30 min", "1h": "1 h" };
/** The most pairs of queue and type with minutes of their own. The rest is added up. */
const maxPairs = 200;
const maxSchedules = 100;
const maxRounds = 8;

export const overview: Page = {
  path: "/",
  section: "Overview",
  async render(request) {
    const range =
      (Object.keys(ranges) as Range[]).find((name) => name === request.query.get("range")) ?? "30m";
    const [now, minutes, [alarms, schedules], asleepSince] = await Promise.all([
      request.db.run(snapshot()),
      request.db.run(recentMinutes({ pairs: maxPairs })),
      request.db.run(together(readAlarms(), listSchedules({ limit: maxSchedules }))),
      request.asleepSince(),
    ]);
    const history = historyOf(now, minutes, { length: ranges[range] });
    return {
      title: "Overview",
      tools: <Ranges request={request} range={range} />,
      body: (
        <>
          <SentenceOfTruth request={request} alarms={alarms} now={now} history={history} />
          <FourNumbers now={now} alarms={alarms} />
          <Charts history={history} rangeName={rangeNames[range]} />
          <QueueTable now={now} minutes={minutes} />
          <div class="two">
            <NextSchedules
              request={request}
              schedules={schedules}
              hasMore={schedules.length === maxSchedules}
            />
            <Rounds
              request={request}
              rounds={now.recentRounds.slice(0, maxRounds)}
              id="last-rounds"
              title="Last rounds"
            />
          </div>
          <Foot now={now} asleepSince={asleepSince} />
        </>
      ),
    };
  },
};

function Ranges({ request, range }: { request: PageRequest; range: Range }) {
  return (
    <nav class="seg" aria-label="Range of the charts">
      {(Object.keys(ranges) as Range[]).map((name) => (
        <a href={urlWith(request, { range: name })} aria-current={name === range ? "true" : undefined}>
          {rangeNames[name]}
        </a>
      ))}
    </nav>
  );
}

function FourNumbers({ now, alarms }: { now: Snapshot; alarms: Alarms }) {
  const groups = now.groups.filter((group) => !isCanary(group));
  const { pending, scheduled, blocked, leased, dead } = sumCounts(groups);
  const oldest = groups.toSorted((a, b) => (b.oldestDueSeconds ?? 0) - (a.oldestDueSeconds ?? 0))[0];
  const oldestSeconds = oldest?.oldestDueSeconds ?? null;
  const fires = (...names: string[]) =>
    alarms.alarms.some(({ state }) => state.phase === "firing" && names.includes(state.alarm));
  const [number, ...unit] = wholeSeconds(oldestSeconds ?? 0).split(" ");
  return (
    <Figures
      figures={[
        {
          name: "Waiting",
          value: count(pending - scheduled),
          unit: pending - scheduled === 1 ? "job due" : "jobs due",
          note: `${count(scheduled)} later, ${count(blocked)} blocked`,
          isAlarming: fires("queue_length_high", "queue_growing"),
        },
        {
          name: "Oldest due job",
          value: oldestSeconds === null ? "none" : (number ?? "0"),
          unit: oldestSeconds === null ? "" : unit.join(" "),
          note: oldestSeconds === null ? "nothing is due" : `in ${oldest?.queue}`,
          isAlarming: fires("oldest_pending_high"),
        },
        {
          name: "Processing",
          value: count(leased),
          unit: leased === 1 ? "job" : "jobs",
          note: `by ${counted(now.liveWorkers, "worker")}`,
        },
        {
          name: "Dead",
          value: count(dead),
          unit: dead === 1 ? "job" : "jobs",
          note: dead === 0 ? "none" : <a href="/dead-letters">look at them</a>,
          isAlarming: dead > 0,
        },
      ]}
    />
  );
}

function Foot({ now, asleepSince }: { now: Snapshot; asleepSince: Date | null }) {
  const sum = (
    name: "enqueued" | "completed" | "dead" | "cancelled" | "discarded" | "pending" | "blocked" | "leased",
  ) => now.groups.reduce((total, group) => total + group[name], 0);
  const ended = sum("cancelled") + sum("discarded");
  const waiting = sum("pending") + sum("blocked");
  const total = sum("completed") + sum("dead") + ended + waiting + sum("leased");
  const isBalanced = total === sum("enqueued");
  return (
    <footer class="foot">
      <span>
        <b>{isBalanced ? "Books balance:" : "Books do not balance:"}</b> {count(sum("enqueued"))} enqueued{" "}
        {isBalanced ? "=" : "≠"} {count(sum("completed"))} completed + {count(sum("dead"))} dead +{" "}
        {count(ended)} cancelled or discarded + {count(waiting)} waiting + {count(sum("leased"))} processing
      </span>
      <span>
        Oldest transaction:{" "}
        {now.oldestTransaction ? wholeSeconds(Math.floor(now.oldestTransaction.seconds)) : "none"}
      </span>
      {asleepSince ? <span>Asleep since {absolute(asleepSince)}</span> : <span>The database is awake</span>}
    </footer>
  );
}
