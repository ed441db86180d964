// Dead letters: list them, replay one or many, discard one.
import type { Context } from "hono";
import * as z from "zod";
import type { DeadLetterPage, ReplayManyResponse } from "../../../contract/admin.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Job, Payload } from "../../../core/job.ts";
import * as sql from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { toJobResponse } from "../codec/job-response.ts";
import { refuseBadPayload } from "../codec/payload.ts";
import { changeJobInPath, findJobInPath } from "../job-in-path.ts";
import type { Handlers } from "../operation-routes.ts";

export const listDeadLetters: Handlers["listDeadLetters"] = async (context, { query }) => {
  const { cursor, ...filter } = query;
  const before = cursor === undefined ? undefined : decodeCursor(cursor, z.uuid());
  const jobs = await context.env.ports.db.run(sql.listDeadLetters({ ...filter, before }));
  const last = jobs.length === filter.limit ? jobs.at(-1) : undefined;
  const body: DeadLetterPage = {
    jobs: jobs.map(toJobResponse),
    next_cursor: last ? encodeCursor(last.id) : null,
  };
  return context.json(body);
};

export const getDeadLetter: Handlers["getDeadLetter"] = async (context) => {
  const job = await findJobInPath(context);
  if (job.status !== "dead") throw new SluiceError("not_found", `job ${job.id} is not a dead letter`);
  return context.json(toJobResponse(job));
};

export const replayDeadLetters: Handlers["replayDeadLetters"] = async (context, { body }) => {
  const { dry_run, per_minute: perMinute, ...filter } = body;
  const { ports, nudge } = context.env;
  if (dry_run) {
    const dead = await ports.db.run(sql.countDeadLetters(filter));
    return context.json({ replayed: dead, dry_run } satisfies ReplayManyResponse);
  }
  const replayed = await ports.db.run(sql.replayMany(context.get("caller").actor, { ...filter, perMinute }));
  for (const { queue: name } of replayed) nudge(name);
  const total = replayed.reduce((sum, row) => sum + row.replayed, 0);
  return context.json({ replayed: total, dry_run } satisfies ReplayManyResponse);
};

export const replayDeadLetter: Handlers["replayDeadLetter"] = async (context, { body }) => {
  const { payload = null } = body;
  if (payload) checkNewPayload(context, await findDeadLetter(context), payload);
  const { actor } = context.get("caller");
  const { applied, job } = await changeJobInPath(context, (id) => sql.replay(actor, { id, payload }));
  if (!applied) throw notDead(job);
  context.env.nudge(job.queue);
  return context.json(toJobResponse(job));
};

export const discardDeadLetter: Handlers["discardDeadLetter"] = async (context, { body }) => {
  const { reason = null } = body;
  const { actor } = context.get("caller");
  const { applied, job } = await changeJobInPath(context, (id) => sql.discard(actor, { id, reason }));
  if (!applied) throw notDead(job);
  return context.json(toJobResponse(job));
};

/** Only the type's own schema can check a new payload, so the job is read first. */
async function findDeadLetter(context: Context<AppEnv>): Promise<Job> {
  const job = await findJobInPath(context);
  if (job.status !== "dead") throw notDead(job);
  return job;
}

function notDead(job: Job): SluiceError {
  return new SluiceError(
    "conflict",
    `job ${job.id} is ${job.status}; only a dead job can be replayed or discarded`,
  );
}

function checkNewPayload(context: Context<AppEnv>, job: Job, payload: Payload): void {
  const definition = context.env.ports.registry.find(job.type);
  if (!definition) throw new SluiceError("forbidden", `the type "${job.type}" is not registered`);
  refuseBadPayload(definition, payload, ["payload"]);
}
