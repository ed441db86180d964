// What happened to a job, in order: enqueued, each attempt, and its end or what comes next.
import type { Child } from "hono/jsx";
import type { ErrorCause, JobError } from "../../../core/job.ts";
import type { ShownJob } from "../../../core/sql/shown-jobs.ts";
import type { PageRequest } from "../../page.ts";
import { Card } from "../../parts/card.tsx";
import { clockTime, counted, duration, wholeSeconds } from "../../parts/numbers.ts";
import { type Shape, StateShape } from "../../parts/state.tsx";
import { Moment } from "../../parts/time.tsx";

interface Event {
  shape: Shape;
  what: string;
  note?: Child;
  at: Date | null;
  error?: JobError;
  isNext?: boolean;
}

export function Timeline({ request, job }: { request: PageRequest; job: ShownJob }) {
  const events = [enqueued(job), ...job.errors.flatMap(attempt), ...latest(job, request.now)];
  const end = job.completedAt ?? job.closedAt;
  const length = (end ?? request.now).getTime() - job.createdAt.getTime();
  return (
    <Card
      id="timeline"
      title="Timeline"
      note={
        <span class="muted small push">
          {end
            ? `${duration(length)} in all`
            : `${wholeSeconds(Math.max(0, Math.floor(length / 1000)))} so far`}
          , {job.attempts} of {job.maxAttempts} attempts used
        </span>
      }
    >
      <ol class="line pad">
        {events.map((event) => (
          <EventLine {...event} day={dayOf(job.createdAt)} />
        ))}
      </ol>
    </Card>
  );
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The day is shown where it is not the one on which the job was enqueued. */
function EventLine({ shape, what, note, at, error, isNext, day }: Event & { day: string }) {
  return (
    <li class={isNext ? "is-next" : undefined}>
      <StateShape shape={shape} />
      <div class="when">
        <b>{what}</b>
        <span class="muted">{note}</span>
        {at ? (
          <span class="push muted">
            <Moment at={at} text={dayOf(at) === day ? clockTime(at) : `${dayOf(at)} ${clockTime(at)}`} />
          </span>
        ) : null}
      </div>
      {error ? <ErrorText error={error} /> : null}
    </li>
  );
}

function ErrorText({ error: { attempt, message, stack, causes = [] } }: { error: JobError }) {
  const details = [stack, ...causes.map(toText)].filter((text): text is string => Boolean(text));
  return (
    <div class="err">
      <p>{message}</p>
      {details.length === 0 ? null : (
        <details>
          <summary>
            {causes.length > 0 ? "Stack and causes" : "Stack"}
            {framesText(details)}
          </summary>
          <pre tabindex={0} role="group" aria-label={`Stack of attempt ${attempt}`}>
            {details.join("\n")}
          </pre>
        </details>
      )}
    </div>
  );
}

function framesText(details: readonly string[]): string {
  const frames = details.join("\n").match(/^\s+at /gm) ?? [];
  return frames.length === 0 ? "" : `, ${counted(frames.length, "frame")}`;
}

function toText({ message, stack }: ErrorCause): string {
  return `caused by: ${stack ?? message}`;
}

function enqueued({ createdAt, schedule, idempotencyKey }: ShownJob): Event {
  const note = schedule
    ? `by the schedule ${schedule.name}${schedule.missed ? ", late" : ""}`
    : idempotencyKey
      ? `with the idempotency key ${idempotencyKey}`
      : undefined;
  return { shape: "pending", what: "Enqueued", note, at: createdAt };
}

/** A shorter wait between two attempts is not worth a line. */
const shownWaitMs = 1000;

/** An attempt that failed, and the wait before it. */
function attempt(error: JobError, index: number, errors: readonly JobError[]): Event[] {
  const before = errors[index - 1];
  const waitedMs = before && error.started_at ? Date.parse(error.started_at) - Date.parse(before.at) : 0;
  const waited: Event = {
    shape: "later",
    what: `Waited ${duration(waitedMs)}`,
    note: "for its retry",
    at: null,
  };
  return waitedMs < shownWaitMs ? [failed(error)] : [waited, failed(error)];
}

function failed(error: JobError): Event {
  const at = new Date(error.at);
  const ranMs = error.started_at === undefined ? undefined : at.getTime() - Date.parse(error.started_at);
  return {
    shape: "dead",
    what: `Attempt ${error.attempt} failed`,
    note: ranBy(ranMs, error.worker),
    at,
    error,
  };
}

/** How it stands now. */
function latest(job: ShownJob, now: Date): Event[] {
  switch (job.status) {
    case "processing":
      return [runs(job, now)];
    case "completed":
      return [completed(job)];
    case "dead":
      return [{ shape: "dead", what: "Dead", note: deadNotes[job.deadReason ?? "fatal"], at: job.closedAt }];
    case "cancelled":
    case "discarded": {
      const note = job.supersededBy ? `replaced by ${job.supersededBy}` : undefined;
      return [
        {
          shape: job.status,
          what: job.status === "cancelled" ? "Cancelled" : "Discarded",
          note,
          at: job.closedAt,
        },
      ];
    }
    default:
      return [
        comes(job, now),
        { shape: "cancelled", what: "Expires", note: "if it is not done by then", at: job.expiresAt },
      ];
  }
}

function runs({ attempts, startedAt, worker, leaseExpiresAt }: ShownJob, now: Date): Event {
  const since = startedAt
    ? `for ${wholeSeconds(Math.floor((now.getTime() - startedAt.getTime()) / 1000))}`
    : "";
  const lease = leaseExpiresAt ? `; its lease ends at ${clockTime(leaseExpiresAt)}` : "";
  return {
    shape: "processing",
    what: `Attempt ${attempts} runs`,
    note: `${since}${worker ? ` by ${worker}` : ""}${lease}`,
    at: startedAt,
    isNext: true,
  };
}

function completed({ attempts, startedAt, completedAt, worker }: ShownJob): Event {
  const ranMs = startedAt && completedAt ? completedAt.getTime() - startedAt.getTime() : undefined;
  return {
    shape: "completed",
    what: `Attempt ${attempts} completed`,
    note: ranBy(ranMs, worker),
    at: completedAt,
  };
}

function ranBy(ranMs: number | undefined, worker: string | null | undefined): string {
  const notes = [ranMs !== undefined && `after ${duration(ranMs)}`, worker && `by ${worker}`];
  return notes.filter(Boolean).join(" ");
}

function comes({ status, attempts, scheduledAt }: ShownJob, now: Date): Event {
  if (status === "blocked")
    return { shape: "blocked", what: "Blocked", note: "it waits for others", at: null, isNext: true };
  const what = `Attempt ${attempts + 1} is due`;
  const seconds = Math.round((scheduledAt.getTime() - now.getTime()) / 1000);
  const note = seconds > 0 ? `in ${wholeSeconds(seconds)}` : `for ${wholeSeconds(-seconds)}`;
  return { shape: seconds > 0 ? "later" : "pending", what, note, at: scheduledAt, isNext: true };
}

const deadNotes = {
  exhausted: "no attempts are left",
  fatal: "its handler said that no attempt can succeed",
  expired: "it was not done in time",
  abandoned: "its last lease ran out",
  blocker: "a job that it waited for did not complete",
};
