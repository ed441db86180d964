// Checks requests for new jobs against the API's rules and the definitions of their types, and enqueues them.
import type { Context } from "hono";
import type { EnqueueRequest } from "../../contract/jobs.ts";
import { SluiceError } from "../../core/errors.ts";
import type { NewJob } from "../../core/job.ts";
import { fromFields, jobLimits, storedPayload } from "../../core/job-options.ts";
import type { Slots } from "../../core/typed-job.ts";
import type { JobDefinition } from "../../jobs/define.ts";
import { type Enqueued, enqueueAll } from "../../queue/enqueue.ts";
import type { AppEnv } from "./app-env.ts";
import { refuseBadPayload } from "./codec/payload.ts";
import { checkMayEnqueue } from "./guards/auth.ts";
import { checkDepth } from "./guards/depth-limit.ts";

/** The most drains that one request starts. The cron drains the other queues. */
const maxNudges = 5;
/** The database's clock and this one may differ by that much. */
const dueWithinMs = 1000;

/** Enqueues all jobs or none, in one statement. Then starts a drain for each queue that got a due job. */
export async function accept<const Jobs extends readonly NewJob[]>(
  context: Context<AppEnv>,
  newJobs: Jobs,
): Promise<Enqueued<Jobs>> {
  checkQueues(context, newJobs);
  const { ports } = context.env;
  const enqueued = await enqueueAll(ports, newJobs);
  const nowMs = ports.clock.nowMs();
  // A debounce decides when its job is due: a full list is due at once.
  const waitMs = (index: number) => (enqueued[index]?.scheduledAt.getTime() ?? 0) - nowMs;
  const isDebounced = (index: number) => newJobs[index]?.debounce && waitMs(index) > dueWithinMs;
  startDrains(
    context,
    newJobs.filter((_, index) => !isDebounced(index)),
  );
  const debounced = [...newJobs.keys()].filter(isDebounced).map(waitMs);
  if (debounced.length > 0) ports.wakeIn(Math.min(...debounced));
  return enqueued;
}

/** Refuses jobs of a queue that is full. */
export function checkQueues(context: Context<AppEnv>, newJobs: readonly NewJob[]): void {
  const waitUntil = (work: Promise<unknown>) => context.executionCtx.waitUntil(work);
  checkDepth({ ...context.env, waitUntil }, new Set(newJobs.map((job) => job.queue ?? "default")));
}

/** Starts a drain for each queue that got a due job. The clock is told of the others. */
export function startDrains(context: Context<AppEnv>, newJobs: readonly NewJob[]): void {
  const { nudge, ports } = context.env;
  const isDueNow = (job: NewJob) => !job.delaySeconds && !job.scheduledAt;
  const byQueue = Map.groupBy(newJobs.filter(isDueNow), (job) => job.queue ?? "default");
  for (const [name, jobs] of [...byQueue].slice(0, maxNudges))
    nudge(
      name,
      jobs.map(({ type }) => type),
    );
  const nowMs = ports.clock.nowMs();
  const waitMs = (job: NewJob) =>
    job.scheduledAt ? job.scheduledAt.getTime() - nowMs : (job.delaySeconds ?? 0) * 1000;
  const later = newJobs.filter((job) => !isDueNow(job)).map(waitMs);
  if (later.length > 0) ports.wakeIn(Math.max(Math.min(...later), 0));
}

export function startDrainsOf(context: Context<AppEnv>, queues: readonly string[]): void {
  for (const name of [...new Set(queues)].slice(0, maxNudges)) context.env.nudge(name);
}

type Rare = "idempotency_key" | "on_blocker_dead" | "debounce" | "throttle";
type NewJobRequest = Omit<EnqueueRequest, "after" | Rare> & Partial<Pick<EnqueueRequest, Rare>>;

type AfterRequest = readonly unknown[] | Readonly<Record<string, readonly unknown[]>> | null;

/** A list fills the only slot of the type. A type that declares no slots accepts any. */
export function toSlots<After extends AfterRequest>(
  slots: Slots,
  after: After | undefined,
  path: readonly string[],
): After | Record<string, unknown[]> | null {
  const names = Object.keys(slots);
  if (!after || names.length === 0) return after ?? null;
  const given = Array.isArray(after) ? { [names[0] ?? ""]: after } : (after as Record<string, unknown[]>);
  if (Array.isArray(after) && names.length > 1)
    throw badField([...path, "after"].join("."), `must be an object with the slots ${names.join(", ")}`);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw badField(
      [...path, "after", unknown].join("."),
      `is not a slot of the type; its slots are ${names.join(", ")}`,
    );
  return given;
}

/** Checks a request against the API's rules and its type. `path` is the place of the request in the body. */
export function toNewJob(
  context: Context<AppEnv>,
  { after, ...request }: NewJobRequest & { after?: AfterRequest },
  path: readonly string[] = [],
): NewJob {
  const options = fromFields(request);
  const payload = storedPayload(request.payload, options);
  const definition = findDefinition(context, { type: request.type, payload }, path);
  checkTimes(context, request, path);
  return {
    ...options,
    after: toSlots(definition.after, after, path) as NewJob["after"],
    type: request.type,
    payload: request.payload,
    queue: request.queue ?? definition.queue,
    maxAttempts: request.max_attempts ?? definition.maxAttempts,
    traceparent: context.req.header("traceparent"), // the database drops one that is malformed
  };
}

/** Checks that this deployment has the type, that the caller may use it, and that the payload fits it. */
export function findDefinition(
  context: Context<AppEnv>,
  { type, payload }: Pick<NewJobRequest, "type" | "payload">,
  path: readonly string[] = [],
): JobDefinition {
  checkMayEnqueue(context, type);
  const definition = context.env.ports.registry.find(type);
  if (!definition) throw unknownType(type);
  refuseBadPayload(definition, payload, [...path, "payload"]);
  return definition;
}

function unknownType(type: string): SluiceError {
  const cure = "add it to sluice({ jobs }), deploy, and check GET /v1/admin/job-types";
  return new SluiceError("type_unknown", `this deployment has no job type "${type}": ${cure}`);
}

/** The header does the same as the field. By its draft it is a quoted string, but one without quotes is accepted too. */
export function findIdempotencyKey(
  context: Context<AppEnv>,
  { idempotency_key: field }: { idempotency_key: string | null },
): string | null {
  const key = context.req.header("idempotency-key")?.replace(/^"(.*)"$/, "$1");
  if (key === undefined) return field;
  // Other bytes can be decoded in several ways, so different keys could become the same.
  if (!/^[ -~]{1,255}$/.test(key)) throw badField("idempotency-key", "must be 1 to 255 ASCII characters");
  if (field !== null && field !== key)
    throw badField("idempotency_key", "must be the same as the header Idempotency-Key");
  return key;
}

/** The database checks this too, by its own clock. But it does not know the field's place in the body. */
function checkTimes(context: Context<AppEnv>, request: NewJobRequest, path: readonly string[]): void {
  const nowMs = context.env.ports.clock.nowMs();
  const { expires_at, scheduled_at } = request;
  if (expires_at && expires_at.getTime() <= nowMs)
    throw badField([...path, "expires_at"].join("."), "must be in the future");
  if (scheduled_at && scheduled_at.getTime() > nowMs + jobLimits.maxDelaySeconds * 1000)
    throw badField([...path, "scheduled_at"].join("."), "must be within 100 years");
}

export function badField(path: string, message: string): SluiceError {
  return new SluiceError("request_invalid", `${path}: ${message}`, { faults: [{ path, message }] });
}
