// The shapes of dead letters: lists, groups, replays, discards, and runs over all that match a filter.
import * as z from "zod";
import { runActions, runStates } from "../core/dead-letters.ts";
import { deadReasons } from "../core/job.ts";
import { jobResponse, name, time } from "./jobs.ts";
import { jsonObject } from "./json.ts";
import { page, plainText } from "./pages.ts";

export const maxReplayed = 1000;
const fingerprint = z
  .string()
  .regex(/^[0-9a-f]{16}$/, "must be 16 hexadecimal digits")
  .describe("Of the error, from the list of groups.");
const at = z.iso.datetime({ offset: true });

export const deadLetterQuery = z.strictObject({
  type: name.optional(),
  reason: z.enum(deadReasons).optional(),
  fingerprint: fingerprint.optional(),
  queue: name.optional(),
  since: at.optional().describe("Only jobs that died at this time or later."),
  until: at.optional().describe("Only jobs that died at this time or earlier."),
  ...page,
});
export const deadLetterPage = z.object({ jobs: z.array(jobResponse), next_cursor: z.string().nullable() });
export type DeadLetterPage = z.output<typeof deadLetterPage>;

export const deadGroupQuery = z.strictObject({
  type: name.optional(),
  reason: z.enum(deadReasons).optional(),
  queue: name.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
});
/** The largest groups first. The totals count all groups that match. */
export const deadGroupsResponse = z.object({
  groups: z.array(
    z.object({
      type: z.string(),
      reason: z.enum(deadReasons),
      fingerprint,
      count: z.int(),
      first_at: time.describe("The first death since the group was last empty."),
      last_at: time,
      newest_job_id: z.uuid(),
      error: z.string().nullable().describe("The error of the newest job. Null: it did not die of an error."),
      pattern: z
        .string()
        .nullable()
        .describe(
          "The first line of the errors, without what differs from job to job: “HTTP ‹n› from ‹url›”.",
        ),
      deaths_by_hour: z
        .array(z.int())
        .length(24)
        .describe(
          "The last 24 hours, oldest first. The last number is of the current hour. A replay takes none back.",
        ),
    }),
  ),
  total_groups: z.int(),
  total_jobs: z.int(),
});
export type DeadGroupsResponse = z.output<typeof deadGroupsResponse>;

/** Without a payload in the request, the job keeps its own. */
export const replayRequest = z.strictObject({ payload: jsonObject.optional() });
export const discardRequest = z.strictObject({ reason: plainText.max(1000).optional() });

const perMinute = z
  .int()
  .min(1)
  .max(100_000)
  .optional()
  .describe(
    "How many jobs a minute, so that a replay is not a second outage. If left out, as fast as it goes.",
  );

/** Replays the oldest deaths first, at most `count` in one request. A dry run only counts them. */
export const replayManyRequest = z.strictObject({
  type: name,
  reason: z.enum(deadReasons).optional(),
  count: z.int().min(1).max(maxReplayed).default(maxReplayed),
  per_minute: perMinute,
  dry_run: z.boolean().default(false),
});
export const replayManyResponse = z.object({
  replayed: z.int(),
  dry_run: z.boolean(),
  run_id: z
    .string()
    .optional()
    .describe(
      "With per_minute: the run that replays the jobs one after the other. Until their turn they stay dead.",
    ),
});
export type ReplayManyResponse = z.output<typeof replayManyResponse>;

/** Each part of the filter that is left out matches everything. */
export const deadRunRequest = z
  .strictObject({
    action: z.enum(runActions),
    type: name.optional(),
    reason: z.enum(deadReasons).optional(),
    fingerprint: fingerprint.optional(),
    queue: name.optional(),
    until: at
      .optional()
      .describe("Only jobs that died by then. Default: now, so a job that dies again is not taken again."),
    count: z.int().min(1).optional().describe("The most jobs, oldest deaths first. Default: all."),
    per_minute: perMinute,
    payload_patch: jsonObject
      .optional()
      .describe(
        "A JSON merge patch (RFC 7396) of each payload. A job whose new payload does not fit its type is skipped.",
      ),
    note: plainText.max(1000).optional().describe("Why, for the audit."),
    dry_run: z.boolean().default(false).describe("Only counts."),
  })
  .refine((run) => run.payload_patch === undefined || (run.type !== undefined && run.action === "replay"), {
    path: ["payload_patch"],
    message: "needs a type, and the action replay",
  });
export type DeadRunRequest = z.output<typeof deadRunRequest>;
export const deadRunCount = z.object({
  matched: z.int(),
  until: time.describe("The time of the count. A run with this time takes these jobs and no others."),
  dry_run: z.literal(true),
});

/** What has become of the jobs that a run has replayed: of the first ones, at most 250. */
export const runOutcomes = z.object({
  jobs: z.int().describe("How many were looked at."),
  completed: z.int(),
  dead: z.int().describe("Again."),
  waiting: z.int().describe("Pending or blocked."),
  processing: z.int(),
  other: z.int().describe("Cancelled, discarded, or no longer stored."),
});

export const deadRunResponse = z.object({
  run_id: z.string(),
  action: z.enum(runActions),
  type: z.string().nullable(),
  reason: z.enum(deadReasons).nullable(),
  fingerprint: fingerprint.nullable(),
  queue: z.string().nullable(),
  until: time,
  count: z.int().nullable(),
  per_minute: z.int().nullable(),
  payload_patch: jsonObject.nullable(),
  note: z.string().nullable(),
  actor: z.string(),
  state: z.enum(runStates),
  matched: z.int().describe("When it was started."),
  done: z.int().describe("How many are replayed or discarded."),
  skipped: z.int(),
  skips: z
    .array(z.object({ job_id: z.uuid(), reason: z.string() }))
    .describe("Why, for the first ten that were skipped."),
  remaining: z.int().describe("An estimate while it runs: others may replay or discard the same jobs."),
  started_at: time,
  ended_at: time.nullable(),
  outcomes: runOutcomes
    .nullable()
    .optional()
    .describe("Only in the answer to GET /v1/admin/dlq-runs/:run. Null if it has replayed nothing."),
});
export type DeadRunResponse = z.output<typeof deadRunResponse>;

export const deadRunQuery = z.strictObject(page);
export const deadRunPage = z.object({ runs: z.array(deadRunResponse), next_cursor: z.string().nullable() });
export type DeadRunPage = z.output<typeof deadRunPage>;
