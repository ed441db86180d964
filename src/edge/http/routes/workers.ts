// Routes for the registry of live workers: a puller's heartbeat, the list, and leaving.
import {
  type RemovedWorkerResponse,
  type WorkerResponse,
  type WorkersResponse,
  workerId,
} from "../../../contract/workers.ts";
import { bucketsOf, ownersOf } from "../../../core/policy/hash-ring.ts";
import * as sql from "../../../core/sql/index.ts";
import type { LiveWorker } from "../../../core/sql/workers.ts";
import { forgetWorker, idsOf, rememberWorkers } from "../live-workers.ts";
import type { Handlers } from "../operation-routes.ts";

export const registerWorker: Handlers["registerWorker"] = async (context, { body: request }) => {
  const { worker_id } = request;
  const queues = [...new Set(request.queues)];
  const { puller, workers } = await context.env.ports.db.run(sql.registerPuller(worker_id, queues));
  const byQueue = queues.map((queue) => ({ queue, ids: idsOf(workers, { queue }) }));
  for (const { queue, ids } of byQueue) rememberWorkers(context.env, queue, ids);
  const buckets = byQueue.map(({ queue, ids }) => [queue, bucketsOf(worker_id, ids)] as const);
  const body: WorkerResponse = {
    worker_id,
    expires_at: puller.expiresAt.toISOString(),
    workers: byQueue[0]?.ids.length ?? 0,
    buckets: buckets[0]?.[1] ?? [],
    ...(queues.length > 1 ? { buckets_by_queue: Object.fromEntries(buckets) } : {}),
  };
  return context.json(body);
};

export const listWorkers: Handlers["listWorkers"] = async (context) => {
  const workers = await context.env.ports.db.run(sql.liveWorkers());
  const counts = countBuckets(workers);
  const body: WorkersResponse = {
    workers: workers.map(({ id, kind, queues, startedAt, seenAt, expiresAt }) => ({
      worker_id: id,
      kind,
      queues,
      started_at: startedAt.toISOString(),
      seen_at: seenAt.toISOString(),
      expires_at: expiresAt.toISOString(),
      bucket_counts: Object.fromEntries(queues.map((queue) => [queue, counts.get(queue)?.get(id) ?? 0])),
    })),
  };
  return context.json(body);
};

export const removeWorker: Handlers["removeWorker"] = async (context) => {
  const worker_id = context.req.param("worker_id") ?? "";
  // Postgres stores no NUL character, so no worker has such an id.
  const canExist = workerId.safeParse(worker_id).success && !worker_id.includes("\0");
  const removed = canExist && (await context.env.ports.db.run(sql.removeWorker(worker_id)));
  forgetWorker(context.env, worker_id);
  return context.json({ worker_id, removed } satisfies RemovedWorkerResponse);
};

/** By queue and worker. */
function countBuckets(workers: readonly LiveWorker[]): Map<string, Map<string, number>> {
  const queues = new Set(workers.flatMap((worker) => worker.queues));
  return new Map(
    [...queues].map((queue) => {
      const owned = Map.groupBy(ownersOf(idsOf(workers, { queue })), (owner) => owner);
      return [queue, new Map([...owned].map(([id, buckets]) => [id, buckets.length]))];
    }),
  );
}
