// Schedules over HTTP and in code, with the rounds of the deployed Worker.
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { scheduleResponse, schedulesResponse } from "../../src/contract/schedules.ts";
import { defineJob, defineSchedule } from "../../src/index.ts";
import { echo } from "../../src/jobs/examples/echo.ts";
import { crons, useDeployment } from "./deployment.ts";

const seen: unknown[] = [];
const witness = defineJob("witness", {
  payload: z.object({ n: z.int() }),
  queue: "witnesses",
  timeoutSeconds: 10,
  run: (_, { schedule }) => {
    seen.push(schedule);
  },
});
const hourly = defineSchedule("hourly", { cron: "0 * * * *", job: witness, payload: { n: 1 } });
const { call, fire, look, query, quiet, bringForward } = useDeployment([echo, witness], {}, [], [hourly]);

const put = (name: string, body: object) =>
  call(`/v1/schedules/${name}`, { method: "PUT", body: JSON.stringify(body) });
const post = (path: string) => call(`/v1/schedules/${path}`, { method: "POST" });
const get = async (name: string) =>
  scheduleResponse.parse(await (await call(`/v1/schedules/${name}`)).json());
const mornings = { cron: "0 9 * * mon-fri", time_zone: "Europe/Berlin", type: "echo", payload: { a: 1 } };

describe("over HTTP", () => {
  test("a put answers with the schedule and its next five slots", async () => {
    const response = await put("mornings", mornings);
    expect(response.status).toBe(201);
    const schedule = scheduleResponse.parse(await response.json());
    expect(schedule).toMatchObject({
      ...{ ...mornings, name: "mornings", queue: "default", priority: 5, missed: "last", overlap: "allow" },
      ...{ paused: false, source: "api", last_slot: null, last_job_id: null },
    });
    expect(schedule.next_slots).toHaveLength(5);
    for (const slot of schedule.next_slots) {
      const local = new Date(slot).toLocaleString("en-GB", {
        timeZone: "Europe/Berlin",
        weekday: "short",
        hour: "numeric",
      });
      expect(local).toMatch(/^(Mon|Tue|Wed|Thu|Fri), 09$/);
    }
    expect((await put("mornings", { ...mornings, payload: {} })).status).toBe(200);
    expect((await get("mornings")).next_slots).toEqual(schedule.next_slots);
  });

  test.each([
    ["cron", { cron: "0 9 * *" }],
    ["cron", { cron: "0 99 * * *" }],
    ["time_zone", { time_zone: "Europe/Nowhere" }],
    ["missed", { missed: "some" }],
    ["payload", { type: "witness", payload: { n: "x" } }],
    ["name", {}, "No!"],
  ])("a bad %s is a 400 that names the field", async (field, body, name = "bad") => {
    const response = await put(encodeURIComponent(name), { ...mornings, ...body });
    expect(response.status).toBe(400);
    const { errors } = (await response.json()) as { errors: { path: string }[] };
    expect(errors.map(({ path }) => path.split(".")[0])).toEqual([field]);
  });

  test("an unknown type is refused, and an unknown schedule is a 404", async () => {
    expect((await put("bad", { ...mornings, type: "nobody" })).status).toBe(403);
    for (const response of [
      await call("/v1/schedules/unknown"),
      await call("/v1/schedules/unknown", { method: "DELETE" }),
      await post("unknown/pause"),
      await post("unknown/resume"),
      await post("unknown/run"),
    ])
      expect(response.status).toBe(404);
  });

  test("a due slot becomes a job in the next drain round, and the job knows its slot", async () => {
    await put("mornings", mornings);
    const [slot] = (await get("mornings")).next_slots;
    await bringForward();
    await fire();
    const { last_job_id } = await get("mornings");
    const jobs = await query<{ id: string; schedule: { slot: string } }>(
      "select id, schedule from sluice.job",
    );
    expect(jobs.map(({ schedule }) => schedule.slot)).toContain(slot);
    expect(await look(last_job_id ?? "")).toMatchObject({
      ...{ type: "echo", status: "completed", output: { a: 1 } },
      schedule: { name: "mornings", missed: false },
    });
  });

  test("pause, resume, run and delete", async () => {
    await put("mornings", mornings);
    expect(scheduleResponse.parse(await (await post("mornings/pause")).json())).toMatchObject({
      paused: true,
      next_slots: [],
    });
    const response = await post("mornings/run");
    expect(response.status).toBe(201);
    const { job_id } = (await response.json()) as { job_id: string };
    await quiet();
    expect(await look(job_id)).toMatchObject({ status: "completed", schedule: { name: "mornings" } });
    expect(scheduleResponse.parse(await (await post("mornings/resume")).json())).toMatchObject({
      ...{ paused: false, last_job_id: job_id, next_slots: { length: 5 } },
    });
    expect((await call("/v1/schedules/mornings", { method: "DELETE" })).status).toBe(200);
    expect((await call("/v1/schedules/mornings")).status).toBe(404);
    expect(await query("select from sluice.scheduled")).toEqual([]);
  });

  test("the list has pages", async () => {
    for (const name of ["c", "a", "b"]) await put(name, mornings);
    const first = schedulesResponse.parse(await (await call("/v1/schedules?limit=2")).json());
    const second = schedulesResponse.parse(
      await (await call(`/v1/schedules?limit=2&cursor=${first.next_cursor}`)).json(),
    );
    expect([first, second].flatMap(({ schedules }) => schedules.map(({ name }) => name))).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(second.next_cursor).toBeNull();
  });
});

describe("in code", () => {
  test("a reap round makes the schedules and their slots, and a handler sees its slot", async () => {
    await fire(crons.reap);
    const { source, next_slots, queue } = await get("hourly");
    expect({ source, slots: next_slots.length, queue }).toEqual({
      source: "code",
      slots: 5,
      queue: "witnesses",
    });
    expect((await put("hourly", { ...mornings })).status).toBe(409);
    seen.length = 0;
    await bringForward();
    await fire();
    expect(seen).toContainEqual({ name: "hourly", slot: new Date(next_slots[0] ?? ""), missed: false });
  });

  test("a missed slot of an outage that outlasts the plan is made up for once", async () => {
    await fire(crons.reap);
    await query(`update sluice.schedule set planned_until = now() - interval '30 hours', refill_at = now()`);
    await query("delete from sluice.scheduled");
    await fire(crons.reap);
    seen.length = 0;
    await fire();
    const late = seen.filter((schedule) => (schedule as { missed: boolean }).missed);
    const before = await query<{ at: string }>(
      "select date_trunc('hour', now() - interval '90 seconds')::text as at",
    );
    expect(late).toEqual([{ name: "hourly", slot: new Date(before[0]?.at ?? ""), missed: true }]);
  });
});
