// The pullers' routes: claim, extend and settle jobs, with the same statements as a drain.
import type { Context } from "hono";
import type {
  ClaimResponse,
  ExtensionsResponse,
  SettlementRequest,
  SettlementsResponse,
} from "../../../contract/work.ts";
import { isOwnType } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/job.ts";
import type { Claim } from "../../../core/sql/claim.ts";
import { extend, extendOne } from "../../../core/sql/index.ts";
import { blockersOf } from "../../../queue/blockers.ts";
import { logEnds } from "../../../queue/log-ends.ts";
import { type EndedAttempt, judgeBreakers, settleAttempt, settleAttempts } from "../../../queue/settle.ts";
import { startDrains, toNewJob } from "../accept-jobs.ts";
import type { AppEnv } from "../app-env.ts";
import { claimForClient } from "../claim-waiting.ts";
import { toClaimedJobResponse } from "../codec/claimed-job-response.ts";
import { toJobResponse } from "../codec/job-response.ts";
import { decodeLease, type Lease, leaseLost } from "../codec/lease.ts";
import {
  addCurrentStatus,
  type OneSettlement,
  type SettlementAnswer,
  wasSettledByLease,
} from "../codec/repeated-settle.ts";
import { refuseOwnType } from "../guards/auth.ts";
import { changeJobInPath } from "../job-in-path.ts";
import { findPlace } from "../live-workers.ts";
import type { Handlers } from "../operation-routes.ts";
import { isContinued, tellClock } from "../tell-clock.ts";

export const claimJobs: Handlers["claimJobs"] = async (context, { body: request }) => {
  const { ports } = context.env;
  for (const type of request.types ?? []) refuseOwnType(type);
  const types =
    request.types?.map((type) => ports.registry.find(type) ?? type) ??
    ports.registry.all().filter(({ type }) => !isOwnType(type));
  const { queue, worker_id: worker } = request;
  const toClaim = async (): Promise<Claim> => ({
    queue,
    // The puller chooses the time of the lease, so the type's own one is left out.
    types: types.map((type) => (typeof type === "string" ? type : { type: type.type, limits: type.limits })),
    limit: request.limit,
    leaseSeconds: request.lease_seconds,
    worker,
    ...(await findPlace(context.env, { queue, worker })),
    run: request.max_run,
    policy: ports.registry.policyOf(queue),
    isDeployed: true,
  });
  const claimed = await claimForClient(context, toClaim, { waitSeconds: request.wait_seconds });
  const body: ClaimResponse = {
    jobs: await Promise.all(
      claimed.jobs.map(async (job) =>
        toClaimedJobResponse(job, { queue, blockers: await blockersOf(ports, job) }),
      ),
    ),
    has_more: claimed.hasMore,
  };
  return context.json(body);
};

export const completeJob: Handlers["completeJob"] = (context, { body }) =>
  settleInPath(context, { ...body, outcome: "complete" });

export const failJob: Handlers["failJob"] = (context, { body }) =>
  settleInPath(context, { ...body, outcome: "fail" });

export const releaseJob: Handlers["releaseJob"] = (context, { body }) =>
  settleInPath(context, { ...body, outcome: "release" });

export const extendJob: Handlers["extendJob"] = async (context, { body: request }) => {
  const { key } = decodeLease(request.lease);
  const seconds = request.lease_seconds;
  const { applied, job, leaseExpiresAt, cancelRequested } = await changeJobInPath(context, (id) =>
    extendOne({ id, leaseKey: key }, { seconds }),
  );
  if (!applied) throw leaseLost(job.id);
  const lease_expires_at = leaseExpiresAt?.toISOString();
  const { lease } = request;
  return context.json({ ...toJobResponse(job), lease, lease_expires_at, cancel_requested: cancelRequested });
};

export const extendJobs: Handlers["extendJobs"] = async (context, { body: request }) => {
  const jobs = request.extensions.map(({ job_id, lease }) => ({
    id: job_id,
    leaseKey: decodeLease(lease).key,
  }));
  const extended = await context.env.ports.db.run(extend(jobs, { seconds: request.lease_seconds }));
  const byId = new Map(extended.map((job) => [job.id, job]));
  const body: ExtensionsResponse = {
    extensions: request.extensions.map(({ job_id }) => {
      const job = byId.get(job_id.toLowerCase());
      return {
        job_id,
        lease_expires_at: job?.leaseExpiresAt.toISOString() ?? null,
        cancel_requested: job?.cancelRequested ?? false,
      };
    }),
  };
  return context.json(body);
};

export const settleJobs: Handlers["settleJobs"] = async (context, { body: request }) => {
  const settled = await settleRequests(context, request.settlements);
  const body: SettlementsResponse = {
    settlements: settled.map(({ id, ...answer }) => ({ job_id: id, ...answer })),
  };
  return context.json(body);
};

async function settleInPath(context: Context<AppEnv>, settlement: OneSettlement): Promise<Response> {
  const { ports } = context.env;
  const lease = decodeLease(settlement.lease);
  const outcome = toOutcome(context, settlement);
  const toEnded = (id: string) => toEndedAttempt(id, outcome, lease);
  const { applied, job } = await changeJobInPath(context, (id) => settleAttempt(ports, toEnded(id)));
  if (!applied) throw wasSettledByLease(job, settlement, lease) ? alreadySettled(job.id) : leaseLost(job.id);
  const settled = [{ id: job.id, status: job.status, applied }];
  logEnds(ports.log, { jobs: [toEnded(job.id)], settled, withFailures: true });
  if (isContinued(outcome)) startDrains(context, [outcome.next]);
  tellClock(context, [toEnded(job.id)]);
  context.executionCtx.waitUntil(judgeBreakers(ports, [toEnded(job.id)])); // the puller need not wait for this
  return context.json(toJobResponse(job));
}

async function settleRequests(
  context: Context<AppEnv>,
  requests: readonly SettlementRequest[],
): Promise<SettlementAnswer[]> {
  const { ports } = context.env;
  const leased = requests.map((settlement) => ({ settlement, lease: decodeLease(settlement.lease) }));
  const ended = leased.map(({ settlement, lease }, index) =>
    toEndedAttempt(settlement.job_id, toOutcome(context, settlement, ["settlements", String(index)]), lease),
  );
  const settled = await settleAttempts(ports, ended);
  logEnds(ports.log, { jobs: ended, settled, withFailures: true });
  const applied = ended.filter((_, index) => settled[index]?.applied);
  startDrains(
    context,
    applied.map(({ outcome }) => outcome).flatMap((outcome) => (isContinued(outcome) ? [outcome.next] : [])),
  );
  tellClock(context, applied);
  return addCurrentStatus(ports, settled, leased);
}

function toEndedAttempt(id: string, outcome: Outcome, { key, ...lease }: Lease): EndedAttempt {
  return { job: { ...lease, id, leaseKey: key }, outcome };
}

function toOutcome(context: Context<AppEnv>, request: OneSettlement, path: readonly string[] = []): Outcome {
  switch (request.outcome) {
    case "complete": {
      const next = request.next && toNewJob(context, request.next, [...path, "next"]);
      return { kind: "complete", output: request.output, ...(next && { next }) };
    }
    case "release":
      return { kind: "release" };
    case "suspend": {
      const { seconds, signal, jobs } = request;
      return { kind: "suspend", wait: { seconds, signal, jobs } };
    }
    case "fail":
      return request.fatal
        ? { kind: "bury", message: request.error }
        : { kind: "retry", message: request.error, retryInSeconds: request.retry_in_seconds };
    default:
      return request satisfies never;
  }
}

function alreadySettled(id: string): SluiceError {
  const cure = "treat this as success if the answer to that request was lost";
  return new SluiceError(
    "already_settled",
    `this lease has already settled job ${id} with the same outcome: ${cure}`,
  );
}
