// The statements of each page of the dashboard, for the tests of what a page costs. A page has at most three.
import * as sql from "../../src/core/sql/index.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import { commonTag, commonTypes, rareType } from "./large-queue.ts";

export interface Page {
  name: string;
  statements: Statement<unknown>[];
  /** It grows with the number of jobs until its search stops. */
  isSearch?: boolean;
}

const types = [...commonTypes, rareType].map((type) => ({ type, limits: { concurrency: 10 } }));
const list = (name: string, filter: Partial<Parameters<typeof sql.listJobs>[0]>): Page => ({
  name: `jobs, ${name}`,
  statements: [sql.listJobs({ limit: 50, ...filter })],
});

const ownStatements: Page[] = [
  { name: "overview", statements: [sql.snapshot(), sql.overview({ range: "30m", queues: 50 })] },
  { name: "overview of 3 h", statements: [sql.snapshot(), sql.overview({ range: "3h", queues: 50 })] },
  { name: "overview of 24 h", statements: [sql.snapshot(), sql.overview({ range: "24h", queues: 50 })] },
  { name: "types", statements: [sql.books(), sql.typeNumbers(types)] },
  { name: "queues", statements: [sql.snapshot(), sql.readHistory({ range: "30m", queues: 50 })] },
  {
    name: "queue",
    statements: [sql.queueNumbers("default"), sql.listBlockedKeys("default", { limit: 10 })],
  },
  { name: "schedules", statements: [sql.listSchedules({ limit: 50 })] },
  {
    name: "alarms",
    statements: [
      sql.readAlarms(),
      sql.snapshot({ windows: [5, 15, 30] }),
      sql.listAlarmEvents({ limit: 50 }),
    ],
  },
  { name: "deliveries", statements: [sql.listDeliveries({ limit: 50 })] },
  { name: "workers", statements: [sql.liveWorkers(), sql.listRounds({ limit: 50 })] },
  { name: "audit", statements: [sql.searchAudit({ limit: 50 })] },
  {
    name: "dead letters",
    statements: [sql.listDeadGroups({ limit: 50 }), sql.listDeadRuns({ limit: 10 }), sql.countDead({})],
  },
  {
    name: "dead letters of a type",
    statements: [sql.listShownDeadLetters({ type: "mail", limit: 50 }), sql.countDead({ type: "mail" })],
  },
  list("all", {}),
  ...(["pending", "processing", "completed", "dead", "cancelled", "blocked"] as const).flatMap((status) => [
    list(status, { status }),
    list(`${status} of a common type`, { status, types: ["mail"] }),
    list(`${status} of a rare type`, { status, types: [rareType] }),
  ]),
  list("a rare type", { types: [rareType] }),
  list("an empty queue, pending", { queue: "empty", status: "pending" }),
  list("a queue", { queue: "heavy" }),
  list("a tag", { tag: commonTag }),
  { ...list("a tag, completed", { tag: commonTag, status: "completed" }), isSearch: true },
  list("a partition key that nobody has", { partitionKey: "none" }),
  list("an old part of the time", { until: new Date(Date.now() - 30 * 60_000) }),
];

/** The counts of the menu come along with the first one. */
export const pages: Page[] = ownStatements.map(({ statements: [first, ...others], ...page }) => ({
  ...page,
  statements: first ? [sql.withMenuCounts(first), ...others] : [],
}));
