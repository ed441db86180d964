// Every operation of the API by its id: who may call it, what it takes and what it answers. The OpenAPI document, the docs
// page and the routes (edge/http/operation-routes.ts) are made from this table.
import { adminOperations } from "./admin-operations.ts";
import { alarmOperations } from "./alarm-operations.ts";
import { bodyLimits } from "./body-limits.ts";
import { deadLetterOperations } from "./dead-letter-operations.ts";
import { flowOperations } from "./flow-operations.ts";
import { resolveRequest } from "./flows.ts";
import { healthResponse } from "./health.ts";
import {
  batchRequest,
  batchResponse,
  cancelRequest,
  cancelRequestedResponse,
  enqueueRequest,
  enqueueResponse,
  jobResponse,
  listQuery,
  listResponse,
} from "./jobs.ts";
import { nudgeRequest, nudgeResponse } from "./nudge.ts";
import type { Operation } from "./operation.ts";
import { scheduleOperations } from "./schedule-operations.ts";
import {
  childrenRequest,
  childrenResponse,
  claimRequest,
  claimResponse,
  completeRequest,
  extendRequest,
  extendResponse,
  extensionsRequest,
  extensionsResponse,
  failRequest,
  releaseRequest,
  settlementsRequest,
  settlementsResponse,
  stepsRequest,
  stepsResponse,
  waitedRequest,
  waitedResponse,
} from "./work.ts";
import { removedWorkerResponse, workerRequest, workerResponse, workersResponse } from "./workers.ts";

const traceparent = "W3C trace context. The job's handler receives it.";
const forClaimedJob = { method: "post", roles: ["worker"], problems: [404, 409] } as const;

export const operations = {
  enqueueJob: {
    method: "post",
    path: "/v1/jobs",
    summary: "Enqueue a job",
    roles: ["producer"],
    headers: { "Idempotency-Key": "Does the same as the field idempotency_key.", traceparent },
    body: { schema: enqueueRequest, maxBytes: bodyLimits.job },
    answers: { 201: enqueueResponse, 200: enqueueResponse },
    answerHeaders: { Location: "The path of the job." },
    problems: [422],
  },
  enqueueJobs: {
    method: "post",
    path: "/v1/jobs/batch",
    summary: "Enqueue up to 100 jobs, all or none",
    roles: ["producer"],
    headers: { traceparent },
    body: { schema: batchRequest, maxBytes: bodyLimits.batch },
    answers: { 201: batchResponse },
    problems: [422],
  },
  listJobs: {
    method: "get",
    path: "/v1/jobs",
    summary: "List jobs, newest first",
    roles: ["producer", "worker", "viewer"],
    query: listQuery,
    answers: { 200: listResponse },
  },
  getJob: {
    method: "get",
    path: "/v1/jobs/{id}",
    summary: "Get a job: its state, errors and output",
    roles: ["producer", "worker", "viewer"],
    answers: { 200: jobResponse },
    problems: [404],
  },
  cancelJob: {
    method: "post",
    path: "/v1/jobs/{id}/cancel",
    summary: "Cancel a pending job, or ask a running one to stop",
    roles: ["producer"],
    body: { schema: cancelRequest, maxBytes: bodyLimits.pull, isOptional: true },
    answers: { 200: jobResponse, 202: cancelRequestedResponse },
    problems: [404, 409],
  },
  resolveJob: {
    method: "post",
    path: "/v1/jobs/{id}/resolve",
    summary: "Complete a pending or blocked job from outside, without a worker",
    roles: ["producer"],
    body: { schema: resolveRequest, maxBytes: bodyLimits.pull },
    answers: { 200: jobResponse },
    problems: [404, 409],
  },
  ...flowOperations,
  nudge: {
    method: "post",
    path: "/v1/nudge",
    summary: "Say that jobs were enqueued by SQL, so that they start at once",
    roles: ["producer"],
    body: { schema: nudgeRequest, maxBytes: bodyLimits.key, isOptional: true },
    answers: { 202: nudgeResponse },
  },
  claimJobs: {
    method: "post",
    path: "/v1/claims",
    summary: "Claim due jobs under a lease",
    roles: ["worker"],
    body: { schema: claimRequest, maxBytes: bodyLimits.pull },
    answers: { 200: claimResponse },
  },
  completeJob: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/complete",
    summary: "Complete a claimed job",
    body: { schema: completeRequest, maxBytes: bodyLimits.pull },
    answers: { 200: jobResponse },
  },
  failJob: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/fail",
    summary: "Fail a claimed job",
    body: { schema: failRequest, maxBytes: bodyLimits.pull },
    answers: { 200: jobResponse },
  },
  releaseJob: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/release",
    summary: "Release a claimed job: it is pending again and the attempt does not count",
    body: { schema: releaseRequest, maxBytes: bodyLimits.pull },
    answers: { 200: jobResponse },
  },
  extendJob: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/extend",
    summary: "Extend the lease of a claimed job",
    body: { schema: extendRequest, maxBytes: bodyLimits.pull },
    answers: { 200: extendResponse },
  },
  storeSteps: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/steps",
    summary: "Store what durable steps of a claimed job have returned",
    body: { schema: stepsRequest, maxBytes: bodyLimits.batch },
    answers: { 200: stepsResponse },
  },
  startChildren: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/children",
    summary: "Enqueue up to 100 jobs for a durable step of a claimed job, each once",
    body: { schema: childrenRequest, maxBytes: bodyLimits.batch },
    answers: { 200: childrenResponse },
    problems: [...forClaimedJob.problems, 422],
  },
  findWaited: {
    ...forClaimedJob,
    path: "/v1/jobs/{id}/waited",
    summary: "Look whether a signal was sent, and how jobs have ended, for a durable step of a claimed job",
    body: { schema: waitedRequest, maxBytes: bodyLimits.pull },
    answers: { 200: waitedResponse },
  },
  extendJobs: {
    method: "post",
    path: "/v1/extensions",
    summary: "Extend the leases of up to 1,000 claimed jobs, each independently of the others",
    roles: ["worker"],
    body: { schema: extensionsRequest, maxBytes: bodyLimits.pull },
    answers: { 200: extensionsResponse },
  },
  settleJobs: {
    method: "post",
    path: "/v1/settlements",
    summary: "Settle up to 1,000 claimed jobs, each independently of the others",
    roles: ["worker"],
    body: { schema: settlementsRequest, maxBytes: bodyLimits.batch },
    answers: { 200: settlementsResponse },
  },
  registerWorker: {
    method: "post",
    path: "/v1/workers",
    summary: "Register a worker, or renew its registration: call it every 10 s",
    roles: ["worker"],
    body: { schema: workerRequest, maxBytes: bodyLimits.pull },
    answers: { 200: workerResponse },
  },
  listWorkers: {
    method: "get",
    path: "/v1/workers",
    summary: "List the live workers that share partition keys",
    roles: ["worker", "viewer"],
    answers: { 200: workersResponse },
  },
  removeWorker: {
    method: "delete",
    path: "/v1/workers/{worker_id}",
    summary: "Remove a worker: the others take its buckets at once",
    roles: ["worker"],
    answers: { 200: removedWorkerResponse },
  },
  ...deadLetterOperations,
  ...adminOperations,
  ...alarmOperations,
  ...scheduleOperations,
  getHealth: {
    method: "get",
    path: "/health",
    summary: "Check whether the queue works",
    roles: null,
    answers: { 200: healthResponse, 503: healthResponse },
  },
} satisfies Record<string, Operation>;

export type OperationId = keyof typeof operations;
