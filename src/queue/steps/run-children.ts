// step.all: children of a job. They are enqueued once, with idempotency keys that follow from the job and the step, and their
// ids are stored. The job waits until all of them have ended.
import { FatalError } from "../../core/errors.ts";
import type { Json, NewJob, Payload } from "../../core/job.ts";
import type { ChildOutcome, ChildType } from "./step.ts";
import { type Known, msSince, pause, type StepCalls, store } from "./step-calls.ts";

const maxChildren = 1000;
/** Larger outcomes are read again in each invocation. */
const maxStoredCharacters = 256 * 1024;
const ended: readonly string[] = ["completed", "dead", "cancelled", "discarded"];

interface Children {
  id: string;
  child: ChildType;
  payloads: readonly unknown[];
}

export async function runChildren(
  calls: StepCalls,
  known: Known,
  { id, child, payloads }: Children,
): Promise<ChildOutcome<Json>[]> {
  const stored = known.steps.get(id);
  if (stored !== undefined) return stored as unknown as ChildOutcome<Json>[];
  const ids = await startOnce(calls, known, { id, child, payloads });
  const ends = ids.length > 0 ? await calls.host.findOutcomes(ids) : [];
  const open = ends.filter(({ status }) => !ended.includes(status)).map((end) => end.id);
  if (open.length > 0) return pause(calls, { for: { jobs: open } });
  const outcomes = ends.map(({ id: jobId, status, output }) => ({ status, jobId, output }));
  if (JSON.stringify(outcomes).length <= maxStoredCharacters)
    await store(calls, known, { name: id, value: outcomes });
  return outcomes as ChildOutcome<Json>[];
}

async function startOnce(
  calls: StepCalls,
  known: Known,
  { id, child, payloads }: Children,
): Promise<readonly string[]> {
  const name = `${id}:jobs`;
  const stored = known.steps.get(name);
  if (stored !== undefined) return stored as string[];
  if (payloads.length > maxChildren)
    throw new FatalError(`${id}: at most ${maxChildren} payloads, not ${payloads.length}`);
  const jobs = payloads.map((payload, index) => newChild(calls, { id, child, payload, index }));
  const beganMs = calls.host.clock.nowMs();
  const ids = jobs.length > 0 ? await calls.host.enqueue(jobs) : [];
  return (await store(calls, known, {
    name,
    value: [...ids],
    took_ms: msSince(calls.host, beganMs),
  })) as string[];
}

function newChild(
  { host }: StepCalls,
  { id, child, payload, index }: { id: string; child: ChildType; payload: unknown; index: number },
): NewJob {
  const [fault] = child.faultsOf(payload);
  if (fault) throw new FatalError(`${id}: payload ${index} does not fit: ${fault.path} ${fault.message}`);
  return {
    type: child.type,
    payload: payload as Payload,
    queue: child.queue,
    maxAttempts: child.maxAttempts,
    idempotencyKey: `${host.jobId}:${id}:${index}`,
    ...(host.traceparent && { traceparent: host.traceparent }),
  };
}
