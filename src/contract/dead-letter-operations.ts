// The operations for dead letters. A viewer may call those that only read.
import { bodyLimits } from "./body-limits.ts";
import {
  deadGroupQuery,
  deadGroupsResponse,
  deadLetterPage,
  deadLetterQuery,
  deadRunCount,
  deadRunPage,
  deadRunQuery,
  deadRunRequest,
  deadRunResponse,
  discardRequest,
  replayManyRequest,
  replayManyResponse,
  replayRequest,
} from "./dead-letters.ts";
import { jobResponse } from "./jobs.ts";
import type { Operation } from "./operation.ts";

const adminsOnly = [] as const;
const viewers = ["viewer"] as const;
const path = "/v1/admin/dlq";
/** Apart from `/v1/admin/dlq/{id}`, so that no id and no word can be taken for each other. */
const runsPath = "/v1/admin/dlq-runs";

export const deadLetterOperations = {
  listDeadLetters: {
    method: "get",
    path,
    summary: "List dead letters, the last death first",
    roles: viewers,
    query: deadLetterQuery,
    answers: { 200: deadLetterPage },
  },
  listDeadGroups: {
    method: "get",
    path: `${path}/groups`,
    summary: "List groups of dead letters by type, reason and error, the largest first",
    roles: viewers,
    query: deadGroupQuery,
    answers: { 200: deadGroupsResponse },
  },
  startDeadRun: {
    method: "post",
    path: runsPath,
    summary: "Replay or discard all dead letters that match. A dry run only counts them",
    roles: adminsOnly,
    body: { schema: deadRunRequest, maxBytes: bodyLimits.job },
    answers: { 201: deadRunResponse, 200: deadRunCount },
  },
  listDeadRuns: {
    method: "get",
    path: runsPath,
    summary: "List runs over dead letters, newest first",
    roles: viewers,
    query: deadRunQuery,
    answers: { 200: deadRunPage },
  },
  getDeadRun: {
    method: "get",
    path: `${runsPath}/{run}`,
    summary: "Get a run over dead letters, with its progress",
    roles: viewers,
    answers: { 200: deadRunResponse },
    problems: [404],
  },
  stopDeadRun: {
    method: "post",
    path: `${runsPath}/{run}/stop`,
    summary: "Stop a run. What it has not come to stays dead",
    roles: adminsOnly,
    answers: { 200: deadRunResponse },
    problems: [404, 409],
  },
  getDeadLetter: {
    method: "get",
    path: `${path}/{id}`,
    summary: "Get a dead letter",
    roles: viewers,
    answers: { 200: jobResponse },
    problems: [404],
  },
  replayDeadLetter: {
    method: "post",
    path: `${path}/{id}/replay`,
    summary: "Replay a dead letter, with a new payload if the body has one",
    roles: adminsOnly,
    body: { schema: replayRequest, maxBytes: bodyLimits.job, isOptional: true },
    answers: { 200: jobResponse },
    problems: [404, 409],
  },
  discardDeadLetter: {
    method: "post",
    path: `${path}/{id}/discard`,
    summary: "Discard a dead letter",
    roles: adminsOnly,
    body: { schema: discardRequest, maxBytes: bodyLimits.job, isOptional: true },
    answers: { 200: jobResponse },
    problems: [404, 409],
  },
  replayDeadLetters: {
    method: "post",
    path: `${path}/replay`,
    summary: "Replay up to 1,000 dead letters of a type, oldest first",
    roles: adminsOnly,
    body: { schema: replayManyRequest, maxBytes: bodyLimits.job },
    answers: { 200: replayManyResponse },
  },
} satisfies Record<string, Operation>;
