// Routes for the registered job types: list them with their options and counters, pause and resume one.
import type { Context } from "hono";
import type { JobTypeResponse, PausedTypeResponse } from "../../../contract/admin.ts";
import { isCanary } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { OpenBreaker } from "../../../core/sql/breaker.ts";
import { books, listBreakers, listPauses, pause, resume } from "../../../core/sql/index.ts";
import type { JobType } from "../../../queue/ports.ts";
import type { AppEnv } from "../app-env.ts";
import { findPause, sumBooks } from "../codec/books-response.ts";
import type { Handlers } from "../operation-routes.ts";

export const listJobTypes: Handlers["listJobTypes"] = async (context) => {
  const { ports } = context.env;
  const [rows, pauses, breakers] = await Promise.all([
    ports.db.run(books()),
    ports.db.run(listPauses()),
    ports.db.run(listBreakers()),
  ]);
  const definitions = ports.registry.all().filter((definition) => !isCanary(definition));
  const job_types = definitions.map((definition): JobTypeResponse => {
    const { type } = definition;
    return {
      ...toOptionsResponse(definition),
      ...findPause(pauses, { kind: "type", name: type }),
      breaker: findBreaker(breakers, type),
      books: sumBooks(rows.filter((row) => row.type === type)),
    };
  });
  return context.json({ job_types });
};

export const pauseJobType: Handlers["pauseJobType"] = async (context) => {
  const { type } = findTypeInPath(context);
  await context.env.ports.db.run(pause(context.get("caller").actor, { type }));
  return context.json({ type, paused: true } satisfies PausedTypeResponse);
};

export const resumeJobType: Handlers["resumeJobType"] = async (context) => {
  const { type, queue } = findTypeInPath(context);
  await context.env.ports.db.run(resume(context.get("caller").actor, { type }));
  context.env.nudge(queue);
  return context.json({ type, paused: false } satisfies PausedTypeResponse);
};

function findTypeInPath(context: Context<AppEnv>): JobType {
  const type = context.req.param("type") ?? "";
  const definition = context.env.ports.registry.find(type);
  if (!definition) throw new SluiceError("not_found", `the type "${type}" is not registered`);
  return definition;
}

function toOptionsResponse(definition: JobType) {
  const { backoff, limits } = definition;
  return {
    type: definition.type,
    queue: definition.queue,
    work: definition.work.kind,
    max_attempts: definition.maxAttempts,
    backoff: {
      base_seconds: backoff.baseSeconds,
      max_seconds: backoff.maxSeconds,
      jitter_seconds: backoff.jitterSeconds,
    },
    timeout_seconds: definition.timeoutSeconds,
    lease_seconds: definition.leaseSeconds,
    concurrency: limits.concurrency ?? null,
    rate: limits.rate ? { limit: limits.rate.limit, per_seconds: limits.rate.perSeconds } : null,
  };
}

function findBreaker(breakers: readonly OpenBreaker[], type: string): JobTypeResponse["breaker"] {
  const open = breakers.find((breaker) => breaker.type === type);
  return open
    ? { state: "open", opened_at: open.openedAt.toISOString() }
    : { state: "closed", opened_at: null };
}
