// Everything that the dashboard can change, by name. An action is a form that is turned into a request of the HTTP API, so
// validation, roles and audit are those of the API. A page links to one by <ActionForm>.
import type * as z from "zod";
import type { operations } from "../contract/operations.ts";
import {
  FormError,
  jsonField,
  namesField,
  payloadOfForm,
  textFields,
  utcField,
  wholeNumber,
} from "./form-fields.ts";
import type { Html } from "./page.ts";
import { mostGroups, parseGroup } from "./pages/dead-letters/filter.ts";
import { absolute, count, counted } from "./parts/numbers.ts";
import { pageSize } from "./parts/pager.tsx";

type Operations = typeof operations;
type Answers<Id extends keyof Operations> = Operations[Id]["answers"];
type Answer<Id extends keyof Operations> = z.output<Extract<Answers<Id>[keyof Answers<Id>], z.ZodType>>;

export interface Action<Id extends keyof Operations = keyof Operations> {
  /** Parameters of its path are taken from the form's fields of the same name. */
  operation: Id;
  /** The body, from the form. Throw a FormError if a field cannot be read. */
  body?(form: URLSearchParams): unknown;
  /** What the message says afterwards. */
  done(answer: Answer<Id>): string;
  /** It is run for each value of the field `id`, such as the rows that are selected, with all other fields of the form. */
  each?: Each;
  /** Shows the answer itself, in place of a message. For what must not be stored, such as a new key. */
  show?(answer: Answer<Id>): { title: string; body: Html };
}

export interface Each {
  /** What is selected. */
  noun: string;
  /** A form takes so many. */
  most: number;
  /** What the message says of so many. */
  done(count: number): string;
}

function action<Id extends keyof Operations>(operation: Id, rest: Omit<Action<Id>, "operation">): Action {
  return { operation, ...rest } as unknown as Action;
}

function forEachJob(operation: "cancelJob" | "replayDeadLetter", word: string): Action {
  const done = (jobs: number) => `${counted(jobs, "job")} ${jobs === 1 ? "is" : "are"} ${word}`;
  return action(operation, {
    body: () => ({}),
    done: () => done(1),
    each: { noun: "job", most: pageSize, done },
  });
}

function groupField(form: URLSearchParams, name: string) {
  const group = parseGroup(form.get(name) ?? "");
  if (!group) throw new FormError(name, "this is no group of dead letters");
  return group;
}

function runsStarted(runs: number): string {
  return runs === 1 ? "1 run has started" : `${count(runs)} runs have started, one for each group`;
}

export const actions = {
  enqueueJob: action("enqueueJob", {
    body: (form) => ({
      ...textFields(form, ["type", "idempotency_key"]),
      payload: payloadOfForm(form),
      delay_seconds: wholeNumber(form, "delay_seconds"),
    }),
    done: ({ job_id }) => `Job ${job_id} is enqueued.`,
    show: ({ job_id, type, deduplicated }) => ({
      title: "New job",
      body: (
        <div class="card pad stack">
          <p>
            {deduplicated ? "The form was sent before, so it made no second job: " : "The job is enqueued: "}
            <a href={`/jobs/${job_id}`}>{job_id}</a>
          </p>
          <p>
            <a href={`/types/${encodeURIComponent(type)}`}>Back to the type {type}</a>
          </p>
        </div>
      ),
    }),
  }),
  cancelJob: action("cancelJob", {
    body: (form) => ({ running: form.get("running") === "true" }),
    done: (job) =>
      "cancel_requested" in job ? `Job ${job.job_id} was asked to stop.` : `Job ${job.job_id} is cancelled.`,
  }),
  cancelJobs: forEachJob("cancelJob", "cancelled"),
  replayJobs: forEachJob("replayDeadLetter", "replayed"),
  resolveJob: action("resolveJob", {
    body: (form) => ({ output: jsonField(form, "output") }),
    done: (job) => `Job ${job.job_id} is completed.`,
  }),
  replayDeadLetter: action("replayDeadLetter", {
    body: (form) => (form.get("payload") ? { payload: jsonField(form, "payload") } : {}),
    done: (job) => `Job ${job.job_id} is replayed.`,
  }),
  discardDeadLetter: action("discardDeadLetter", {
    body: (form) => (form.get("reason") ? { reason: form.get("reason") } : {}),
    done: (job) => `Job ${job.job_id} is discarded.`,
  }),
  startDeadRun: action("startDeadRun", {
    body: (form) => ({
      action: form.get("action"),
      ...textFields(form, ["type", "reason", "fingerprint", "queue", "until", "note"]),
      count: form.get("first") ? 1 : wholeNumber(form, "count"),
      per_minute: wholeNumber(form, "per_minute"),
      ...(form.get("payload_patch")?.trim() && { payload_patch: jsonField(form, "payload_patch") }),
    }),
    done: (run) =>
      "run_id" in run
        ? `${run.action === "replay" ? "Replay" : "Discard"} ${run.run_id} has started: ${counted(run.matched, "job")}.`
        : `${counted(run.matched, "job")} would be taken.`,
  }),
  startDeadRuns: action("startDeadRun", {
    body: (form) => ({
      action: form.get("action"),
      ...groupField(form, "id"),
      ...textFields(form, ["queue", "until", "note"]),
      ...(form.get("first") && { count: 1 }),
      per_minute: wholeNumber(form, "per_minute"),
    }),
    done: () => runsStarted(1),
    each: { noun: "group", most: mostGroups, done: runsStarted },
  }),
  stopDeadRun: action("stopDeadRun", {
    done: ({ action, run_id, done, remaining }) =>
      `Run ${run_id} is stopped: ${counted(done, "job")} ${done === 1 ? "was" : "were"} ${action === "replay" ? "replayed" : "discarded"}, the other ${count(remaining)} are dead, as they were.`,
  }),
  cancelFlow: action("cancelFlow", {
    done: ({ cancelled }) =>
      `${counted(cancelled, "job")} of the flow ${cancelled === 1 ? "is" : "are"} cancelled.`,
  }),
  pauseJobType: action("pauseJobType", { done: ({ type }) => `The type ${type} is paused.` }),
  resumeJobType: action("resumeJobType", { done: ({ type }) => `The type ${type} runs again.` }),
  pauseQueue: action("pauseQueue", { done: ({ queue }) => `The queue ${queue} is paused.` }),
  resumeQueue: action("resumeQueue", { done: ({ queue }) => `The queue ${queue} runs again.` }),
  pauseSchedule: action("pauseSchedule", { done: ({ name }) => `The schedule ${name} is paused.` }),
  resumeSchedule: action("resumeSchedule", { done: ({ name }) => `The schedule ${name} runs again.` }),
  runSchedule: action("runSchedule", { done: ({ name, job_id }) => `${name} made the job ${job_id}.` }),
  silenceAlarm: action("silenceOneAlarm", {
    body: (form) => ({
      ...(form.get("until") ? { until: utcField(form, "until") } : { minutes: wholeNumber(form, "minutes") }),
      ...textFields(form, ["reason"]),
    }),
    done: ({ alarm, silenced_until }) =>
      `${alarm} is silenced until ${absolute(new Date(silenced_until ?? 0))}.`,
  }),
  unsilenceAlarm: action("unsilenceAlarm", {
    body: () => ({}),
    done: ({ alarm }) => `The silence of ${alarm} is over.`,
  }),
  sendTestNotice: action("sendTestNotice", {
    body: (form) => textFields(form, ["target"]),
    done: ({ targets }) =>
      targets.length === 0
        ? "There is no target: set SLUICE_ALARM_TARGETS."
        : targets
            .map(
              ({ target, delivered, error }) =>
                `${target}: ${delivered ? "delivered" : (error ?? "refused")}`,
            )
            .join("; "),
  }),
  addKey: action("addKey", {
    body: (form) => ({
      ...{ name: form.get("name"), role: form.get("role") },
      job_types: namesField(form, "job_types"),
      rate_limit_per_second: wholeNumber(form, "rate_limit_per_second"),
    }),
    done: ({ name }) => `The key ${name} is made.`,
    show: ({ name, role, key }) => ({
      title: "New key",
      body: (
        <div class="card pad stack">
          <p>
            The key <b>{name}</b> has the role {role}. It is shown only now: copy it.
          </p>
          <p>
            <code>{key}</code>
          </p>
          <p>
            <a href="/keys">All keys</a>
          </p>
        </div>
      ),
    }),
  }),
  revokeKey: action("revokeKey", { done: ({ name }) => `The key ${name} is revoked.` }),
} satisfies Record<string, Action>;

export type ActionId = keyof typeof actions;

export function findAction(id: string): Action | undefined {
  return Object.hasOwn(actions, id) ? actions[id as ActionId] : undefined;
}
