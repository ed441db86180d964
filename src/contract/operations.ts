// Every operation of the API: who may, what goes in, what comes out. The OpenAPI document and the docs page are made of it.
import * as z from "zod";
import { adminOperations } from "./admin-operations.ts";
import {
  batchRequest,
  batchResponse,
  enqueueRequest,
  enqueueResponse,
  jobResponse,
  listQuery,
  listResponse,
} from "./jobs.ts";
import type { Operation } from "./operation.ts";
import {
  claimRequest,
  claimResponse,
  completeRequest,
  extendRequest,
  extendResponse,
  failRequest,
  releaseRequest,
  settlementsRequest,
  settlementsResponse,
} from "./work.ts";

/** Each check is "ok", "starting" right after a deployment, or a word for what is wrong. */
const health = z.object({ status: z.string(), checks: z.record(z.string(), z.string()) });
export type HealthResponse = z.output<typeof health>;
const traceparent = "W3C trace context: it goes along with the job to its handler.";
const held = { roles: ["worker"], problems: [404, 409] } as const;

export const operations: readonly Operation[] = [
  {
    id: "enqueueJob",
    method: "post",
    path: "/v1/jobs",
    summary: "Enqueue a job",
    roles: ["producer"],
    headers: { "Idempotency-Key": "The same as the field idempotency_key.", traceparent },
    body: enqueueRequest,
    answers: { 201: enqueueResponse, 200: enqueueResponse },
    answerHeaders: { Location: "The path of the job." },
    problems: [422],
  },
  {
    id: "enqueueJobs",
    method: "post",
    path: "/v1/jobs/batch",
    summary: "Enqueue up to 100 jobs, all or none",
    roles: ["producer"],
    headers: { traceparent },
    body: batchRequest,
    answers: { 201: batchResponse },
    problems: [422],
  },
  {
    id: "listJobs",
    method: "get",
    path: "/v1/jobs",
    summary: "List jobs, newest first",
    roles: ["producer", "worker", "viewer"],
    query: listQuery,
    answers: { 200: listResponse },
  },
  {
    id: "getJob",
    method: "get",
    path: "/v1/jobs/{id}",
    summary: "Look at a job: its state, its errors, its output",
    roles: ["producer", "worker", "viewer"],
    answers: { 200: jobResponse },
    problems: [404],
  },
  {
    id: "cancelJob",
    method: "post",
    path: "/v1/jobs/{id}/cancel",
    summary: "Cancel a pending job",
    roles: ["producer"],
    answers: { 200: jobResponse },
    problems: [404, 409],
  },
  {
    id: "claimJobs",
    method: "post",
    path: "/v1/claims",
    summary: "Claim due jobs under a lease",
    roles: ["worker"],
    body: claimRequest,
    answers: { 200: claimResponse },
  },
  {
    ...held,
    id: "completeJob",
    method: "post",
    path: "/v1/jobs/{id}/complete",
    summary: "Complete a claimed job",
    body: completeRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    id: "failJob",
    method: "post",
    path: "/v1/jobs/{id}/fail",
    summary: "Fail a claimed job",
    body: failRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    id: "releaseJob",
    method: "post",
    path: "/v1/jobs/{id}/release",
    summary: "Give a claimed job back",
    body: releaseRequest,
    answers: { 200: jobResponse },
  },
  {
    ...held,
    id: "extendJob",
    method: "post",
    path: "/v1/jobs/{id}/extend",
    summary: "Hold a claimed job for longer",
    body: extendRequest,
    answers: { 200: extendResponse },
  },
  {
    id: "settleJobs",
    method: "post",
    path: "/v1/settlements",
    summary: "Settle up to 1,000 claimed jobs, each on its own",
    roles: ["worker"],
    body: settlementsRequest,
    answers: { 200: settlementsResponse },
  },
  ...adminOperations,
  {
    id: "getHealth",
    method: "get",
    path: "/health",
    summary: "Is the queue able to work",
    roles: null,
    answers: { 200: health, 503: health },
  },
];
