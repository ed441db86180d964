// Dead letters: list them, one by one and in groups, replay one or many, discard one.
import type { Context } from "hono";
import * as z from "zod";
import type {
  DeadGroupsResponse,
  DeadLetterPage,
  ReplayManyResponse,
} from "../../../contract/dead-letters.ts";
import type { DeadGroup } from "../../../core/dead-letters.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Job, Payload } from "../../../core/job.ts";
import * as sql from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import { toJobResponse } from "../codec/job-response.ts";
import { refuseBadPayload } from "../codec/payload.ts";
import { changeJobInPath, findJobInPath } from "../job-in-path.ts";
import type { Handlers } from "../operation-routes.ts";
import { startRun } from "../start-run.ts";

export const listDeadLetters: Handlers["listDeadLetters"] = async (context, { query }) => {
  const { cursor, since, until, ...filter } = query;
  const page = {
    ...filter,
    since: since === undefined ? undefined : new Date(since),
    until: until === undefined ? undefined : new Date(until),
    before: cursor === undefined ? undefined : decodeCursor(cursor, position),
  };
  const found = await context.env.ports.db.run(sql.listDeadLetters(page));
  const last = found.length === page.limit ? found.at(-1)?.position : undefined;
  const body: DeadLetterPage = {
    jobs: found.map(({ job }) => toJobResponse(job)),
    next_cursor: last ? encodeCursor(`${last.diedMicros}/${last.jobId}`) : null,
  };
  return context.json(body);
};

const position = z
  .string()
  .transform((text) => ({ diedMicros: text.split("/")[0], jobId: text.split("/")[1] }))
  .pipe(z.object({ diedMicros: z.string().regex(/^\d{1,17}$/), jobId: z.uuid() }));

export const listDeadGroups: Handlers["listDeadGroups"] = async (context, { query }) => {
  const { groups, totalGroups, totalDead } = await context.env.ports.db.run(sql.listDeadGroups(query));
  const body: DeadGroupsResponse = {
    groups: groups.map(toGroupResponse),
    total_groups: totalGroups,
    total_jobs: totalDead,
  };
  return context.json(body);
};

function toGroupResponse(group: DeadGroup): DeadGroupsResponse["groups"][number] {
  const { firstAt, lastAt, newestId, hours, ...rest } = group;
  return {
    ...rest,
    first_at: firstAt.toISOString(),
    last_at: lastAt.toISOString(),
    newest_job_id: newestId,
    deaths_by_hour: hours,
  };
}

export const getDeadLetter: Handlers["getDeadLetter"] = async (context) => {
  const job = await findJobInPath(context);
  if (job.status !== "dead") throw new SluiceError("not_found", `job ${job.id} is not a dead letter`);
  return context.json(toJobResponse(job));
};

export const replayDeadLetters: Handlers["replayDeadLetters"] = async (context, { body }) => {
  const { dry_run, per_minute: perMinute, count, ...filter } = body;
  const { ports, nudge } = context.env;
  const { actor } = context.get("caller");
  if (dry_run) {
    const { dead } = await ports.db.run(sql.countDead(filter));
    return context.json({ replayed: Math.min(dead, count), dry_run } satisfies ReplayManyResponse);
  }
  if (perMinute !== undefined) {
    const run = await startRun(context, { action: "replay", ...filter, maxJobs: count, perMinute });
    return context.json({ replayed: run.matched, dry_run, run_id: run.id } satisfies ReplayManyResponse);
  }
  const replayed = await ports.db.run(sql.replayMany(actor, { ...filter, count }));
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
