// Routes for the registered job types: list them with their options and counters, pause and resume one.
import type { Context } from "hono";
import type { JobTypeResponse, PausedTypeResponse } from "../../../contract/admin.ts";
import { isCanary } from "../../../core/alarms/alarm.ts";
import type { Percentiles } from "../../../core/durations.ts";
import { SluiceError } from "../../../core/errors.ts";
import { books, pause, resume, typeNumbers } from "../../../core/sql/index.ts";
import type { TypeNumbers } from "../../../core/sql/type-numbers.ts";
import type { JobType } from "../../../queue/ports.ts";
import type { AppEnv } from "../app-env.ts";
import { sumBooks } from "../codec/books-response.ts";
import type { Handlers } from "../operation-routes.ts";

export const listJobTypes: Handlers["listJobTypes"] = async (context) => {
  const { ports } = context.env;
  const definitions = ports.registry.all().filter((definition) => !isCanary(definition));
  const [rows, numbers] = await Promise.all([ports.db.run(books()), ports.db.run(typeNumbers(definitions))]);
  const byType = new Map(numbers.map((entry) => [entry.type, entry]));
  const job_types = definitions.flatMap((definition): JobTypeResponse[] => {
    const { type } = definition;
    const own = byType.get(type);
    if (!own) return []; // it is listed, so it has numbers
    return [
      {
        ...toOptionsResponse(definition),
        ...toNumbersResponse(own),
        books: sumBooks(rows.filter((row) => row.type === type)),
      },
    ];
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

function toNumbersResponse(numbers: TypeNumbers) {
  const { pausedSince, breaker, inUse, since, enqueued, completed, failed, retried, died } = numbers;
  const openedAt = breaker && breaker.closedAt === null ? breaker.openedAt.toISOString() : null;
  return {
    paused: pausedSince !== null,
    paused_since: pausedSince?.toISOString() ?? null,
    breaker: { state: openedAt ? ("open" as const) : ("closed" as const), opened_at: openedAt },
    last_hour: {
      ...{ since: since.toISOString(), enqueued, completed, failed, retried, died },
      failure_rate: completed + failed === 0 ? null : failed / (completed + failed),
      waiting: toPercentilesResponse(numbers.waiting),
      processing: toPercentilesResponse(numbers.processing),
    },
    in_use: inUse,
  };
}

function toPercentilesResponse(percentiles: Percentiles | null) {
  if (!percentiles) return null;
  const { jobs, p50Seconds, p95Seconds } = percentiles;
  return { jobs, p50_seconds: p50Seconds, p95_seconds: p95Seconds };
}
