// Overview: how things are, in one sentence, four numbers, three charts and a table of queues.
import { isCanary } from "../../core/alarms/alarm.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import { overview as readOverview, snapshot } from "../../core/sql/index.ts";
import type { Overview } from "../../core/sql/overview.ts";
import type { Page } from "../page.ts";
import { sumCounts } from "../parts/books.ts";
import { Figures } from "../parts/figures.tsx";
import { Charts, Ranges, rangeOf } from "../parts/history-charts.tsx";
import { absolute, count, counted, duration, wholeSeconds } from "../parts/numbers.ts";
import { NextSchedules } from "./overview/next-schedules.tsx";
import { QueueTable } from "./overview/queue-table.tsx";
import { SentenceOfTruth } from "./overview/sentence-of-truth.tsx";
import { Rounds } from "./workers/rounds.tsx";

/** The most queues with series of their own. The rest is added up. */
const maxQueues = 100;
const maxRounds = 8;

export const overview: Page = {
  path: "/",
  section: "Overview",
  async render(request) {
    const range = rangeOf(request);
    const [now, shown, asleepSince] = await Promise.all([
      request.db.run(snapshot()),
      request.db.run(readOverview({ range, queues: maxQueues })),
      request.asleepSince(),
    ]);
    const { pending, scheduled } = sumCounts(now.groups.filter((group) => !isCanary(group)));
    return {
      title: "Overview",
      tools: <Ranges request={request} range={range} />,
      body: (
        <>
          <SentenceOfTruth request={request} shown={shown} now={now} />
          <FourNumbers now={now} shown={shown} />
          <Charts history={shown.history} dueNow={pending - scheduled} />
          <QueueTable now={now} shown={shown} />
          <div class="two">
            <NextSchedules request={request} slots={shown.nextSlots} />
            <Rounds
              request={request}
              rounds={now.recentRounds.slice(0, maxRounds)}
              id="last-rounds"
              title="Last rounds"
              note={
                <a class="push small" href="/workers#rounds">
                  All rounds
                </a>
              }
            />
          </div>
          <Foot now={now} asleepSince={asleepSince} />
        </>
      ),
    };
  },
};

function FourNumbers({ now, shown }: { now: Snapshot; shown: Overview }) {
  const groups = now.groups.filter((group) => !isCanary(group));
  const { pending, scheduled, blocked, leased, dead } = sumCounts(groups);
  const oldest = groups.toSorted((a, b) => (b.oldestDueSeconds ?? 0) - (a.oldestDueSeconds ?? 0))[0];
  const oldestSeconds = oldest?.oldestDueSeconds ?? null;
  const fires = (...names: string[]) => shown.firing.some(({ alarm }) => names.includes(alarm));
  const p95 = shown.waiting ? `; p95 of the last hour ${duration(shown.waiting.p95Seconds * 1000)}` : "";
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
          note: `${oldestSeconds === null ? (pending > scheduled ? "the due jobs wait for others of their keys" : "nothing is due") : `in ${oldest?.queue}`}${p95}`,
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
        {now.oldestTransaction
          ? wholeSeconds(Math.max(0, Math.floor(now.oldestTransaction.seconds)))
          : "none"}
      </span>
      {asleepSince ? <span>Asleep since {absolute(asleepSince)}</span> : <span>The database is awake</span>}
    </footer>
  );
}
