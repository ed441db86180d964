// The operations of flows, chains and signals.
import { bodyLimits } from "./body-limits.ts";
import {
  cancelFlowResponse,
  chainResponse,
  deleteFlowResponse,
  flowMadeResponse,
  flowQuery,
  flowRequest,
  flowResponse,
  flowsQuery,
  flowsResponse,
  signalRequest,
  signalResponse,
} from "./flows.ts";
import type { Operation } from "./operation.ts";

const traceparent = "W3C trace context. The jobs' handlers receive it.";

export const flowOperations = {
  enqueueFlow: {
    method: "post",
    path: "/v1/flows",
    summary: "Enqueue up to 1,000 jobs that wait for each other, all or none",
    roles: ["producer"],
    headers: {
      "Idempotency-Key": "A second request with the same key answers with the first flow.",
      traceparent,
    },
    body: { schema: flowRequest, maxBytes: bodyLimits.batch },
    answers: { 201: flowMadeResponse, 200: flowMadeResponse },
    answerHeaders: { Location: "The path of the flow." },
    problems: [422],
  },
  listFlows: {
    method: "get",
    path: "/v1/flows",
    summary: "List flows, newest first",
    roles: ["producer", "viewer"],
    query: flowsQuery,
    answers: { 200: flowsResponse },
  },
  getFlow: {
    method: "get",
    path: "/v1/flows/{id}",
    summary: "Get a flow: its progress and its jobs",
    roles: ["producer", "viewer"],
    query: flowQuery,
    answers: { 200: flowResponse },
    problems: [404],
  },
  cancelFlow: {
    method: "post",
    path: "/v1/flows/{id}/cancel",
    summary: "Cancel the jobs of a flow that have not started",
    roles: ["producer"],
    answers: { 200: cancelFlowResponse },
    problems: [404],
  },
  deleteFlow: {
    method: "delete",
    path: "/v1/flows/{id}",
    summary: "Delete a flow that has ended, with its jobs",
    roles: [],
    answers: { 200: deleteFlowResponse },
    problems: [404, 409],
  },
  getChain: {
    method: "get",
    path: "/v1/chains/{id}",
    summary: "Get a chain of jobs that continue each other, by the id of any of them",
    roles: ["producer", "worker", "viewer"],
    answers: { 200: chainResponse },
    problems: [404],
  },
  sendSignal: {
    method: "post",
    path: "/v1/signals/{name}",
    summary: "Send a signal: the first one of a name and key counts",
    roles: ["producer"],
    body: { schema: signalRequest, maxBytes: bodyLimits.job },
    answers: { 202: signalResponse, 200: signalResponse },
  },
} satisfies Record<string, Operation>;
