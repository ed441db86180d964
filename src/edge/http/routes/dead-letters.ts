// Dead letters: list them, replay one or many, discard one.
import type { Context } from "hono";
import * as z from "zod";
import type { DeadLetterPage, ReplayManyResponse } from "../../../contract/admin.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Job, Payload } from "../../../core/job.ts";
import * as sql from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { jobResponseOf } from "../codec/job-response.ts";
import { checkPayload } from "../codec/payload.ts";
import type { Handlers } from "../operation-routes.ts";
import { jobOf } from "./jobs.ts";

export const listDeadLetters: Handlers["listDeadLetters"] = async (context, { query }) => {
  const { cursor, ...filter } = query;
  const before = cursor === undefined ? undefined : decodeCursor(cursor, z.uuid());
  const found = await context.env.ports.db.run(sql.listDeadLetters({ ...filter, before }));
  const last = found.length === filter.limit ? found.at(-1) : undefined;
  const body: DeadLetterPage = {
    jobs: found.map(jobResponseOf),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};

export const getDeadLetter: Handlers["getDeadLetter"] = async (context) => {
  const job = await jobOf(context);
  if (job.status !== "dead") throw new SluiceError("not_found", `job ${job.id} is not a dead letter`);
  return context.json(jobResponseOf(job));
};

export const replayDeadLetters: Handlers["replayDeadLetters"] = async (context, { body }) => {
  const { dry_run, per_minute: perMinute, ...asked } = body;
  const { ports, nudge } = context.env;
  if (dry_run) {
    const dead = await ports.db.run(sql.countDeadLetters(asked));
    return context.json({ replayed: dead, dry_run } satisfies ReplayManyResponse);
  }
  const replayed = await ports.db.run(sql.replayManyAs(context.get("caller").actor, { ...asked, perMinute }));
  for (const { queue: name } of replayed) nudge(name);
  const total = replayed.reduce((sum, row) => sum + row.replayed, 0);
  return context.json({ replayed: total, dry_run } satisfies ReplayManyResponse);
};

export const replayDeadLetter: Handlers["replayDeadLetter"] = async (context, { body }) => {
  const { payload = null } = body;
  const { ports, nudge } = context.env;
  const job = await deadJobOf(context);
  if (payload) checkNewPayload(context, job, payload);
  const isReplayed = await ports.db.run(sql.replayAs(context.get("caller").actor, { id: job.id, payload }));
  if (!isReplayed) throw notDead(job);
  const replayed = await jobOf(context);
  nudge(replayed.queue);
  return context.json(jobResponseOf(replayed));
};

export const discardDeadLetter: Handlers["discardDeadLetter"] = async (context, { body }) => {
  const { reason = null } = body;
  const job = await deadJobOf(context);
  const isDiscarded = await context.env.ports.db.run(
    sql.discardAs(context.get("caller").actor, { id: job.id, reason }),
  );
  if (!isDiscarded) throw notDead(job);
  return context.json(jobResponseOf(await jobOf(context)));
};

async function deadJobOf(context: Context<AppEnv>): Promise<Job> {
  const job = await jobOf(context);
  if (job.status !== "dead") throw notDead(job);
  return job;
}

function notDead(job: Job): SluiceError {
  return new SluiceError("conflict", `job ${job.id} is not dead`);
}

function checkNewPayload(context: Context<AppEnv>, job: Job, payload: Payload): void {
  const definition = context.env.ports.registry.find(job.type);
  if (!definition) throw new SluiceError("forbidden", `the type "${job.type}" is not registered`);
  checkPayload(definition, payload, ["payload"]);
}
