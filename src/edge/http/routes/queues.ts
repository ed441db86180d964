// Routes for queues: list, pause, resume, list the blocked partition keys of one. A queue exists if the deployment defines it or a
// registered type names it, if it ever had a job, or if it is paused.
import type { Context } from "hono";
import * as z from "zod";
import type {
  PartitionPage,
  PausedQueueResponse,
  QueueDetailResponse,
  QueueResponse,
} from "../../../contract/admin.ts";
import { name } from "../../../contract/jobs.ts";
import { isCanary } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { BlockedKey } from "../../../core/sql/blocked-keys.ts";
import {
  books,
  knowsQueue,
  listBlockedKeys,
  listPauses,
  pause,
  queueNumbers,
  resume,
} from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";
import { findPause, sumBooks } from "../codec/books-response.ts";
import { decodeCursor, encodeCursor } from "../codec/cursor.ts";
import type { Handlers } from "../operation-routes.ts";

export const listQueues: Handlers["listQueues"] = async (context) => {
  const { ports } = context.env;
  const [all, pauses] = await Promise.all([ports.db.run(books()), ports.db.run(listPauses())]);
  const rows = all.filter((row) => !isCanary(row));
  const byQueue = Map.groupBy(rows, (row) => row.queue);
  const names = new Set([
    ...ports.registry.queues,
    ...byQueue.keys(),
    ...pauses.filter(({ kind }) => kind === "queue").map((entry) => entry.name),
  ]);
  const queues = [...names].toSorted().map(
    (queue): QueueResponse => ({
      queue,
      ...findPause(pauses, { kind: "queue", name: queue }),
      books: sumBooks(byQueue.get(queue) ?? []),
    }),
  );
  return context.json({ queues });
};

export const getQueue: Handlers["getQueue"] = async (context) => {
  const { db } = context.env.ports;
  const queue = await findQueueInPath(context);
  const [all, numbers] = await Promise.all([db.run(books()), db.run(queueNumbers(queue))]);
  const { looked, top } = numbers.keys;
  const body: QueueDetailResponse = {
    queue,
    paused: numbers.pausedSince !== null,
    paused_since: numbers.pausedSince?.toISOString() ?? null,
    books: sumBooks(all.filter((row) => row.queue === queue)),
    priorities: [...numbers.priorities],
    oldest_due_seconds: numbers.oldestDueSeconds,
    top_keys: { looked, keys: top.map((key) => ({ ...key, share: key.waiting / looked })) },
    blocked_partitions: numbers.blockedKeys,
  };
  return context.json(body);
};

export const pauseQueue: Handlers["pauseQueue"] = async (context) => {
  const queue = await findQueueInPath(context);
  await context.env.ports.db.run(pause(context.get("caller").actor, { queue }));
  return context.json({ queue, paused: true } satisfies PausedQueueResponse);
};

export const resumeQueue: Handlers["resumeQueue"] = async (context) => {
  const queue = await findQueueInPath(context);
  await context.env.ports.db.run(resume(context.get("caller").actor, { queue }));
  context.env.nudge(queue);
  return context.json({ queue, paused: false } satisfies PausedQueueResponse);
};

export const listPartitions: Handlers["listPartitions"] = async (context, { query: { cursor, limit } }) => {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, partitionCursor);
  const queue = await findQueueInPath(context);
  const keys = await context.env.ports.db.run(listBlockedKeys(queue, { after, limit }));
  const last = keys.length === limit ? keys.at(-1)?.position : undefined;
  const body: PartitionPage = {
    partitions: keys.map(toPartitionResponse),
    next_cursor: last ? encodeCursor(`${last.sinceMicros}/${last.jobId}`) : null,
  };
  return context.json(body);
};

const partitionCursor = z
  .string()
  .transform((text) => ({ sinceMicros: text.split("/")[0], jobId: text.split("/")[1] }))
  .pipe(z.object({ sinceMicros: z.string().regex(/^\d{1,17}$/), jobId: z.uuid() }));

function toPartitionResponse(blocked: BlockedKey): PartitionPage["partitions"][number] {
  return {
    partition_key: blocked.partitionKey,
    bucket: blocked.bucket,
    since: blocked.since.toISOString(),
    job_id: blocked.jobId,
    type: blocked.type,
    dead_reason: blocked.deadReason,
    error: blocked.error,
    waiting: blocked.waiting,
    waiting_is_more: blocked.waitingIsMore,
  };
}

async function findQueueInPath(context: Context<AppEnv>): Promise<string> {
  const { ports } = context.env;
  const queue = context.req.param("queue") ?? "";
  const isDeployed = ports.registry.queues.includes(queue);
  const exists = isDeployed || (name.safeParse(queue).success && (await ports.db.run(knowsQueue(queue))));
  if (!exists) throw new SluiceError("not_found", `there is no queue "${queue}": it never had a job`);
  return queue;
}
