// Schedules: in words, with their next slots, and what became of the last ones.
import { beforeEach, describe, expect, test } from "vitest";
import { pageSize } from "../../src/dashboard/parts/pager.tsx";
import { adminCallsOf } from "../worker/admin-calls.ts";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { flashOf, signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
const { send } = adminCallsOf(deployment);
let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

const put = (name: string, fields: object = {}) =>
  send(`PUT /v1/schedules/${name}`, {
    body: { cron: "30 2 * * 1-5", type: "note", payload: { text: "night" }, ...fields },
  });

test("without schedules the page says how to make one", async () => {
  expect(await admin.page("/schedules")).toContain("/v1/schedules/nightly -d");
});

test("a schedule is said in words, with its zone, its next five slots there, and its rule for missed slots", async () => {
  await put("nightly", { time_zone: "Asia/Kolkata", missed: "all", overlap: "skip" });
  const text = await admin.page("/schedules");
  expect(text).toContain("at 02:30, Monday to Friday");
  expect(text).toContain("<code>30 2 * * 1-5</code> Asia/Kolkata");
  expect(text.match(/>[A-Z][a-z]{2},? \d{1,2} [A-Z][a-z]+,? 02:30:00</g)).toHaveLength(5);
  expect(text).toContain("all are made up for");
  expect(text).toContain("waits for its last job");
  expect(text).toContain("none yet");
});

describe("the last outcomes", () => {
  test("are a dot for each job, at most ten, with its state and a link", async () => {
    await put("nightly");
    for (let n = 0; n < 11; n++) await send("POST /v1/schedules/nightly/run");
    const jobs = await deployment.query<{ id: string }>("select id from sluice.jobs order by id");
    await deployment.call(`/v1/jobs/${jobs[10]?.id}/cancel`, { method: "POST", body: "{}" });
    const text = await admin.page("/schedules");
    const dots = [...text.matchAll(/<a href="\/jobs\/([^"]+)"[^>]*><svg class="s k-(\w+)"/g)];
    expect(dots.map(([, id, shape]) => [id, shape])).toEqual([
      ...jobs.slice(1, 10).map(({ id }) => [id, "pending"]),
      [jobs[10]?.id, "cancelled"],
    ]);
  });

  test("of jobs that are no longer stored say so", async () => {
    await put("nightly");
    await send("POST /v1/schedules/nightly/run");
    await deployment.query("update sluice.schedule_run set job_id = gen_random_uuid()");
    expect(await admin.page("/schedules")).toContain("no longer stored");
  });
});

test("a schedule runs now, and is paused and resumed", async () => {
  await put("nightly");
  await admin.post("/actions/runSchedule", { name: "nightly", to: "/schedules" });
  expect(flashOf(admin)[1]).toContain("nightly made the job");
  await admin.post("/actions/pauseSchedule", { name: "nightly", to: "/schedules" });
  const text = await admin.page("/schedules");
  expect(text).toContain("1 schedule, 1 paused");
  expect(text).toContain('action="/actions/resumeSchedule"');
});

test("the list has pages by name, and a cursor that is none is the first page", async () => {
  const names = Array.from({ length: pageSize + 2 }, (_, n) => `s${String(n).padStart(3, "0")}`);
  for (const name of names) await put(name);
  const first = await admin.page("/schedules?before=%00");
  const next = /href="([^"]+)" rel="next"/.exec(first)?.[1] ?? "";
  const namesOf = (text: string) =>
    [...text.matchAll(/<th scope="row" class="nw">(s\d+)/g)].map(([, name]) => name);
  expect([...namesOf(first), ...namesOf(await admin.page(next))]).toEqual(names);
});
