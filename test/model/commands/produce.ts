// Commands of producers: enqueue, with keys, and in transactions that stay open, are committed late or rolled back.
import { deepStrictEqual, ok, rejects } from "node:assert/strict";
import fc from "fast-check";
import type { NewJob } from "../../../src/core/job.ts";
import { enqueue } from "../../../src/core/sql/index.ts";
import { runOn } from "../gate/gate-sql.ts";
import { anyKeys, isFair, isOrdered } from "../key-rules.ts";
import { type JobRequest, priorities, tickSeconds } from "../queue-model.ts";
import { anyPick, command, types } from "./command.ts";

const maxOpen = 3;
const anyRequest: fc.Arbitrary<JobRequest> = fc.record({
  type: fc.constantFrom(...types),
  delayTicks: fc.constantFrom(0, 0, 0, 1, 2),
  expiryTicks: fc.constantFrom(null, null, null, 1, 3, 300),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  key: fc.constantFrom(...anyKeys),
});

export const enqueues = anyRequest.map((request) =>
  command(`enqueue ${JSON.stringify(request)}`, async (model, { db }) => {
    const [job] = await db.run(enqueue([newJob(request)]));
    ok(job);
    model.add(job.id, request);
  }),
);

/** A key belongs to one request. With another type it is another request, and the whole batch is refused. */
export const keyedBatches = fc
  .array(
    fc.record({ key: fc.constantFrom("k0", "k1", "k2", "k3"), type: fc.constantFrom("a", "a", "a", "b") }),
    {
      minLength: 1,
      maxLength: 3,
    },
  )
  .map((batch) =>
    command(`enqueue with keys ${JSON.stringify(batch)}`, async (model, { db }) => {
      const requestOf = (type: string): JobRequest => ({
        type,
        delayTicks: 0,
        expiryTicks: null,
        maxAttempts: 2,
        key: null,
      });
      const statement = enqueue(
        batch.map(({ key, type }) => ({ ...newJob(requestOf(type)), idempotencyKey: key })),
      );
      const typeOf = new Map([...model.keys].map(([key, id]) => [key, model.jobs.get(id)?.type]));
      for (const { key, type } of batch) if (!typeOf.has(key)) typeOf.set(key, type);
      if (batch.some(({ key, type }) => typeOf.get(key) !== type)) {
        await rejects(db.run(statement), { code: "SL422" });
        return;
      }
      for (const [index, job] of (await db.run(statement)).entries()) {
        const { key, type } = batch[index] ?? { key: "", type: "" };
        const owner = model.keys.get(key);
        const status = model.jobs.get(owner ?? "")?.status ?? "pending";
        deepStrictEqual([job.deduplicated, job.status], [owner !== undefined, status]);
        if (owner !== undefined) deepStrictEqual(job.id, owner);
        else model.add(job.id, requestOf(type));
        model.keys.set(key, job.id);
      }
    }),
  );

export const opens = fc.array(anyRequest, { minLength: 1, maxLength: 2 }).map((batch) =>
  command(
    `enqueue in an open transaction ${JSON.stringify(batch)}`,
    async (model, { db, sessions }) => {
      const client = await db.pool.connect();
      sessions.push(client);
      await client.query("begin");
      const jobs = await runOn(client, enqueue(batch.map(newJob)));
      model.open.push(
        jobs.map(({ id }, index) => ({
          id,
          request: batch[index] as JobRequest,
          event: model.keyed.nextEvent(),
        })),
      );
    },
    (model) => model.open.length < maxOpen,
  ),
);

export const closes = fc.tuple(anyPick, fc.constantFrom("commit", "commit", "rollback")).map(([pick, end]) =>
  command(
    `${end} (${pick})`,
    async (model, { sessions }) => {
      const index = pick % sessions.length;
      const [client] = sessions.splice(index, 1);
      const [jobs] = model.open.splice(index, 1);
      await client?.query(end);
      client?.release();
      if (end === "commit")
        for (const { id, request, event } of jobs ?? [])
          model.add(id, request, { begun: event, transaction: jobs?.[0]?.event ?? 0 });
    },
    (model) => model.open.length > 0,
  ),
);

function newJob({ type, key, delayTicks, expiryTicks, maxAttempts }: JobRequest): NewJob {
  return {
    type,
    partitionKey: isOrdered({ key }) ? key : null,
    fairKey: isFair({ key }) ? key : null,
    payload: {},
    priority: priorities[type] ?? null,
    maxAttempts,
    delaySeconds: delayTicks * tickSeconds,
    expiresAt: expiryTicks === null ? null : new Date(Date.now() + expiryTicks * tickSeconds * 1000),
  };
}
