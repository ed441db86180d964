// register puller, remove worker, live workers. See migrations/functions/workers.sql.
import type { WorkerKind } from "../worker-kinds.ts";
import { sql } from "./sql.ts";
import { many, one, type Row, type Statement, time, timeOf } from "./statement.ts";

export interface LiveWorker {
  id: string;
  kind: WorkerKind;
  queues: string[];
  startedAt: Date;
  /** Of the last heartbeat. */
  seenAt: Date;
  /** When it is gone, if no heartbeat follows. */
  expiresAt: Date;
}

const columns = sql`worker_id, kind, queues, ${time("started_at")}, ${time("seen_at")}, ${time("expires_at")}`;

/** The heartbeat of a puller. Answers with it, and with all live workers that share a queue with it. */
export function registerPuller(
  id: string,
  queues: readonly string[],
): Statement<{ puller: LiveWorker; workers: LiveWorker[] }> {
  return {
    name: "register puller",
    isRepeatable: true,
    build: (schema) => sql`select ${columns} from ${schema}.register_puller(${id}::text, ${queues}::text[])`,
    decode(rows) {
      const workers = rows.map(decodeWorker);
      const puller = workers.find((worker) => worker.id === id);
      if (!puller) throw new Error("the statement answered without the worker itself");
      return { puller, workers };
    },
  };
}

/** Answers false if the worker was gone already. */
export function removeWorker(id: string): Statement<boolean> {
  return {
    name: "remove worker",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.remove_worker(${id}::text) as removed`,
    decode: one((row) => row.removed === true),
  };
}

/** Without a queue, those of all queues. */
export function liveWorkers({ queue }: { queue?: string } = {}): Statement<LiveWorker[]> {
  return {
    name: "live workers",
    isRepeatable: true,
    build: (schema) => sql`select ${columns} from ${schema}.live_workers(${queue ?? null}::text)`,
    decode: many(decodeWorker),
  };
}

function decodeWorker(row: Row): LiveWorker {
  return {
    id: String(row.worker_id),
    kind: row.kind as LiveWorker["kind"],
    queues: row.queues as string[],
    startedAt: timeOf(row.started_at),
    seenAt: timeOf(row.seen_at),
    expiresAt: timeOf(row.expires_at),
  };
}
