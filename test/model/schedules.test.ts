// Random commands about schedules on Postgres and on a model: each slot that was planned and not dropped makes exactly one job,
// whatever is lost, repeated or rolled back. fast-check shrinks a failure and prints its seed.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import {
  advanceCursors,
  claim,
  deleteSchedule,
  pauseSchedule,
  planSlots,
  putSchedule,
  resumeSchedule,
  runSchedule,
  schedulesToPlan,
} from "../../src/core/sql/index.ts";
import { differences } from "../support/balance.ts";
import { createQuickEmpty } from "../support/quick-empty.ts";
import { newSchedule } from "../support/schedules.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const verbs = verbsOf(db);
const runs = Number(process.env.SLUICE_MODEL_RUNS ?? 100);
const names = ["a", "b", "c"];

interface ModelSchedule {
  paused: boolean;
  cron: string;
  /** Planned, and neither fired nor dropped. In milliseconds. */
  waiting: Set<number>;
}
interface Model {
  schedules: Map<string, ModelSchedule>;
  /** Of jobs that slots made: name and slot. */
  fired: Set<string>;
  /** Jobs that were run by hand, or that deleted schedules have made. */
  others: number;
}
type Step = (model: Model) => Promise<void>;

const claimAll = claim({ queue: "default", types: ["echo"], limit: 100, leaseSeconds: 300 });

/** What claims have fired is in the table of jobs. It must be slots that waited. */
async function look(model: Model, { mustFire }: { mustFire: boolean }): Promise<void> {
  const rows = await verbs.query<{ name: string; slot: string }>(
    "select schedule ->> 'name' as name, schedule ->> 'slot' as slot from sluice.job where schedule is not null",
  );
  const slots = rows.filter(({ slot }) => slot.endsWith(".000Z"));
  const keys = slots.map(({ name, slot }) => `${name} ${slot}`);
  deepStrictEqual(new Set(keys).size, keys.length, "a slot has made two jobs");
  for (const { name, slot } of slots) {
    const key = `${name} ${slot}`;
    if (model.fired.has(key)) continue;
    ok(model.schedules.get(name)?.waiting.delete(Date.parse(slot)), `a job of no slot: ${key}`);
    model.fired.add(key);
  }
  deepStrictEqual(keys.length, model.fired.size, "a job is gone");
  if (mustFire)
    deepStrictEqual(
      await verbs.query("select from sluice.scheduled where run_at < now() - interval '1 s'"),
      [],
    );
  const left = [...model.schedules.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  deepStrictEqual(await verbs.count("scheduled"), left, "slots in the database");
  deepStrictEqual(await differences(verbs), []);
}

const put =
  (name: string, cron: string, paused: boolean, a: number): Step =>
  async (model) => {
    const old = model.schedules.get(name);
    await db.run(putSchedule("me", { ...newSchedule, name, cron, paused, payload: { a }, missed: "all" }));
    const keeps = old && old.cron === cron && old.paused === paused;
    model.schedules.set(name, { cron, paused, waiting: keeps ? old.waiting : new Set() });
  };

/** A second time is a reply that was lost. */
const plan =
  (offsets: number[], times: number): Step =>
  async (model) => {
    await db.pool.query("update sluice.schedule set refill_at = now() where paused_since is null");
    const { schedules } = await db.run(schedulesToPlan({ limit: 10 }));
    const plans = schedules.map((schedule) => {
      const start = Math.floor(schedule.fromMs / 1000) + 1;
      const slotsMs = [...new Set(offsets)]
        .toSorted((a, b) => a - b)
        .map((offset) => (start + offset) * 1000);
      return { ...schedule, slotsMs, refillMs: schedule.nowMs + 86_400_000 };
    });
    const { rows } = await db.pool.query("select name, number::int from sluice.schedule");
    for (let n = 0; n < times; n++) {
      const planned = await db.run(planSlots(plans));
      deepStrictEqual(planned, n === 0 ? plans.length : 0);
    }
    for (const { number, slotsMs } of plans) {
      const { name } = rows.find((row) => row.number === number);
      for (const ms of slotsMs) model.schedules.get(name)?.waiting.add(ms);
    }
  };

const claimBy =
  (claims: number): Step =>
  async () => {
    await Promise.all(Array.from({ length: claims }, () => db.run(claimAll)));
    await db.run(advanceCursors());
    await db.run(claimAll);
  };

/** Time passes: slots become due. */
const bringForward: Step = async () => {
  await db.pool.query("update sluice.scheduled set run_at = now() - interval '2 s'");
  await db.pool.query("select sluice.reset_cursors()");
};

const loseClaim: Step = async () => {
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("select sluice.claim('default', array['echo'], 100, 300)");
  await db.run(claimAll);
  await client.query("rollback");
  client.release();
};

const change =
  (verb: "pause" | "resume" | "delete" | "run", name: string): Step =>
  async (model) => {
    const known = model.schedules.get(name);
    const statement = {
      pause: pauseSchedule,
      resume: resumeSchedule,
      delete: deleteSchedule,
      run: runSchedule,
    }[verb];
    const answer = await db.run<unknown>(statement("me", name));
    deepStrictEqual(Boolean(answer), known !== undefined);
    if (verb === "pause" && known) Object.assign(known, { paused: true, waiting: new Set() });
    if (verb === "resume" && known) known.paused = false;
    if (verb === "delete" && known) {
      // Another one of this name may have the same slots.
      const forget = "update sluice.job set schedule = null where schedule ->> 'name' = $1";
      model.others += [...model.fired].filter(
        (key) => key.startsWith(`${name} `) && model.fired.delete(key),
      ).length;
      await db.pool.query(forget, [name]);
      model.schedules.delete(name);
    }
    if (verb === "run" && known) model.others++;
  };

const anyName = fc.constantFrom(...names);
const anyStep = fc.oneof(
  fc
    .tuple(anyName, fc.constantFrom("0 2 * * *", "0 3 * * *"), fc.boolean(), fc.nat(3))
    .map(([...fields]) => ({
      ...{ text: `put ${fields}`, step: put(...fields), mustFire: false },
    })),
  fc
    .tuple(fc.array(fc.nat(400), { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 2 }))
    .map(([...fields]) => ({
      ...{ text: `plan ${fields.join(" times ")}`, step: plan(...fields), mustFire: false },
    })),
  fc
    .integer({ min: 1, max: 4 })
    .map((claims) => ({ text: `${claims} claims`, step: claimBy(claims), mustFire: true })),
  fc.constant({ text: "time passes", step: bringForward, mustFire: false }),
  fc.constant({ text: "a claim is lost", step: loseClaim, mustFire: false }),
  fc.tuple(fc.constantFrom("pause", "resume", "delete", "run"), anyName).map(([verb, name]) => ({
    ...{ text: `${verb} ${name}`, step: change(verb as "pause", name), mustFire: false },
  })),
);

test("each slot makes one job", { timeout: 240_000 }, async () => {
  const property = fc
    .asyncProperty(fc.array(anyStep, { maxLength: 30, size: "max" }), async (steps) => {
      const model: Model = { schedules: new Map(), fired: new Set(), others: 0 };
      for (const { step, mustFire } of steps) {
        await step(model);
        await look(model, { mustFire });
      }
      deepStrictEqual(await verbs.count("job"), model.fired.size + model.others);
    })
    .beforeEach(createQuickEmpty(db.pool));
  await fc.assert(property, { numRuns: runs });
});
