// Queues: the list, and a queue with its priorities, keys and blocked keys.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { pageSize } from "../../src/dashboard/parts/pager.tsx";
import { defineJob, FatalError } from "../../src/index.ts";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { flashOf, signedIn, type Visitor } from "./visitor.ts";

const order = defineJob("order", {
  payload: z.object({ passes: z.boolean() }),
  timeoutSeconds: 10, // short enough for the drain after an enqueue
  run: ({ passes }) => {
    if (!passes) throw new FatalError("not this one");
  },
});
const deployment = useDeployment([note, order]);
let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

async function enqueue(job: object): Promise<string> {
  const id = await deployment.enqueue(job);
  await deployment.quiet();
  return id;
}
const bury = (partition_key: string) => enqueue({ type: "order", partition_key, payload: { passes: false } });
const keysOf = (text: string) =>
  [...text.matchAll(/<th scope="row" class="nw"><code>([^<]*)/g)].map(([, key]) => key);

describe("the list", () => {
  test("has the queues of types, jobs and pauses, each with a link", async () => {
    await deployment.enqueueMany("note", [{ text: "a" }], { queue: "rush" });
    await deployment.call("/v1/admin/queues/rush/pause", { method: "POST" });
    const text = await admin.page("/queues");
    expect(text).toContain('<a href="/queues/default">default</a>');
    expect(text).toContain('<a href="/queues/rush">rush</a>');
    expect(text).toContain("2 queues, 1 paused");
  });
});

describe("a queue", () => {
  test("that is not there is a 404, and one without jobs says so", async () => {
    expect((await admin.get("/queues/nobody")).status).toBe(404);
    for (const odd of ["%3Cscript%3E", "%00", "A%20B"])
      expect((await admin.get(`/queues/${odd}`)).status).toBe(404);
    expect(await admin.page("/queues/default")).toContain("It has never had a job.");
  });

  test("has its depth by priority, and charts of it alone", async () => {
    await deployment.enqueue({ type: "note", payload: { text: "a" }, priority: 1 });
    await deployment.enqueue({ type: "note", payload: { text: "b" }, priority: 7, delay_seconds: 60 });
    await deployment.enqueueMany("note", [{ text: "elsewhere" }], { queue: "rush" });
    const text = await admin.page("/queues/default");
    expect(text).toContain("Priority 1: 0 later, 1 due, 0 blocked, 0 processing, 0 dead");
    expect(text).toContain("Priority 7: 1 later, 0 due, 0 blocked, 0 processing, 0 dead");
    expect(text).toMatch(/class="hit"[^>]*><title>\d\d:\d\d: 1 due</); // and no mark of the queue rush
    expect(await admin.page("/queues/default?range=24h")).toContain("Charts of the last 24 h");
  });

  test("has the keys with the most waiting jobs and their shares", async () => {
    for (const fair_key of ["big", "big", "big", "<small>"])
      await deployment.enqueue({ type: "note", payload: { text: "a" }, fair_key });
    const text = await admin.page("/queues/default");
    expect(text).toContain("of the 4 oldest waiting jobs with a key");
    expect(keysOf(text)).toEqual(["big", "&lt;small&gt;"]);
    expect(text).toContain("75 %");
  });

  test("is paused and resumed here", async () => {
    const to = "/queues/default";
    await admin.post("/actions/pauseQueue", { queue: "default", to });
    expect(flashOf(admin)).toEqual(["done", "The queue default is paused."]);
    expect(await admin.page(to)).toContain('action="/actions/resumeQueue"');
  });
});

describe("blocked keys", () => {
  test("are listed with the dead job and its error, and a replay or a discard goes to that job", async () => {
    const id = await bury("customer <1>");
    await enqueue({ type: "order", partition_key: "customer <1>", payload: { passes: true } });
    const text = await admin.page("/queues/default");
    expect(keysOf(text)).toContain("customer &lt;1&gt;");
    expect(text).toContain("not this one");
    expect(text).toContain(`action="/actions/replayDeadLetter"`);
    await admin.post("/actions/discardDeadLetter", { id, to: "/queues/default" });
    expect(await admin.page("/queues/default")).toContain("Then its key is listed here.");
    const viewer = await signedIn(deployment, "viewer");
    await bury("customer 2");
    expect(await viewer.page("/queues/default")).not.toContain("/actions/");
  });

  test("have pages, each key once, and a cursor that is none is the first page", async () => {
    const keys = Array.from({ length: pageSize + 3 }, (_, n) => `key-${n}`);
    const jobs = keys.map((partition_key) => ({ type: "order", partition_key, payload: { passes: false } }));
    await deployment.call("/v1/jobs/batch", { method: "POST", body: JSON.stringify({ jobs }) });
    await deployment.quiet();
    await deployment.fire();
    const first = await admin.page("/queues/default?before=x");
    const next = /href="([^"]+)" rel="next"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const seen = [...keysOf(first), ...keysOf(await admin.page(next))].filter((key) =>
      key?.startsWith("key-"),
    );
    expect(seen.toSorted()).toEqual(keys.toSorted());
  });
});
