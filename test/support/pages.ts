// Every page of the dashboard as a request against a filled database, for the tests of what a page costs. A page is rendered
// for real, and the statements that it sends are recorded. A page without a parameter is here by itself; one with a
// parameter needs a URL, and one with several ways to read has several.
import * as z from "zod";
import { alarmRules } from "../../src/core/alarms/alarm-defaults.ts";
import type { Statement } from "../../src/core/sql/statement.ts";
import type { PageRequest } from "../../src/dashboard/page.ts";
import { pages } from "../../src/dashboard/pages.ts";
import { countForMenu } from "../../src/edge/dashboard/count-for-menu.ts";
import { definePulledJob } from "../../src/index.ts";
import { createRegistry } from "../../src/jobs/registry.ts";
import type { Database } from "../../src/queue/ports.ts";
import type { FilledPages } from "./fill-pages.ts";
import { commonTag, commonTypes, rareType } from "./large-queue.ts";

export interface PageExample {
  path: string;
  /** The path of one page, with its query. `{job}` and the like stand for fields of FilledPages. */
  url: string;
  /** It grows with the number of jobs until its search stops. */
  isSearch?: true;
}

const statuses = ["pending", "processing", "completed", "dead", "cancelled", "blocked"];
const urls: Record<string, readonly (string | Omit<PageExample, "path">)[]> = {
  "/": ["/", "/?range=3h", "/?range=24h"],
  "/jobs": [
    ...["", ...statuses.map((status) => `status=${status}`)].flatMap((status) =>
      ["", "&type=mail", `&type=${rareType}`].map((type) => `/jobs?${status}${type}`),
    ),
    "/jobs?queue=empty&status=pending",
    "/jobs?queue=heavy",
    `/jobs?tag=${commonTag}`,
    { url: `/jobs?tag=${commonTag}&status=completed`, isSearch: true },
    "/jobs?key=none",
    "/jobs?until=30m",
  ],
  "/jobs/:id": ["pending", "keyed", "processing", "completed", "dead", "member"].map(
    (name) => `/jobs/{${name}}`,
  ),
  "/flows": ["/flows", { url: "/flows?status=dead", isSearch: true }, "/flows?status=completed"],
  "/flows/:id": ["/flows/{flow}", "/flows/{flow}?before={member}", "/flows/{smallFlow}"],
  "/types/:type": ["/types/mail"],
  "/queues/:queue": ["/queues/default", "/queues/heavy?range=24h", "/queues/ordered"],
  "/dead-letters": ["/dead-letters", "/dead-letters?type=mail", "/dead-letters?queue=heavy&reason=fatal"],
  "/dead-letters/jobs": [
    "/dead-letters/jobs",
    "/dead-letters/jobs?type=mail",
    "/dead-letters/jobs?queue=heavy",
    "/dead-letters/jobs?type=mail&fingerprint={fingerprint}",
  ],
  "/dead-letters/start": ["/dead-letters/start", "/dead-letters/start?type=mail&fingerprint={fingerprint}"],
  "/dead-letters/runs/:run": ["/dead-letters/runs/{run}"],
  "/audit": [
    { url: "/audit", isSearch: true },
    { url: "/audit?actor=nobody", isSearch: true },
  ],
  "/workers": ["/workers", "/workers?kind=reap"],
  "/schedules": ["/schedules", "/schedules?before=schedule-5"],
};

export const pageExamples: PageExample[] = pages.flatMap(({ path }) =>
  (urls[path] ?? [path]).map((example) =>
    typeof example === "string" ? { path, url: example } : { path, ...example },
  ),
);

const registry = createRegistry(
  [...commonTypes, rareType].map((type) => definePulledJob(type, { payload: z.object({}), concurrency: 10 })),
);

/** Renders the page and answers with its statements. */
export async function statementsOf(
  db: Database,
  { path, url: template }: PageExample,
  filled: FilledPages,
): Promise<Statement<unknown>[]> {
  const page = pages.find((known) => known.path === path);
  if (!page) throw new Error(`there is no page ${path}`);
  const url = new URL(
    template.replace(/\{(\w+)\}/g, (_, name: keyof FilledPages) => filled[name]),
    "https://sluice.example",
  );
  const statements: Statement<unknown>[] = [];
  const recording: Database = {
    run(statement) {
      statements.push(statement);
      return db.run(statement);
    },
  };
  const content = await page.render(requestOf(countForMenu(recording).db, path, url));
  // The parts of a page may read, too.
  for (const part of [content.body, content.facts, content.tools, content.crumbs])
    await (await part)?.toString();
  return statements;
}

function requestOf(db: Database, path: string, url: URL): PageRequest {
  const values = url.pathname.split("/");
  const names = path.split("/");
  return {
    db,
    registry,
    now: new Date(),
    settings: {
      environment: undefined,
      deployment: { name: "test", publicUrl: undefined, runbookUrl: undefined },
      schema: "sluice",
      alarmRules: alarmRules(),
      alarmTargets: [],
    },
    viewer: { name: "admin", role: "admin", mayChange: true },
    url,
    query: url.searchParams,
    param: (name) => decodeURIComponent(values[names.indexOf(`:${name}`)] ?? ""),
    asleepSince: async () => null,
  };
}
