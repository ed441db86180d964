// Backpressure: a queue with too many waiting jobs accepts no more over HTTP. The depths are read after a response, at most
// once in a few seconds, so no enqueue waits for them.
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { depths } from "../../../core/sql/index.ts";
import type { AppEnv } from "../app-env.ts";

const readEveryMs = 5_000;

type Invocation = Pick<AppEnv["Bindings"], "ports" | "settings" | "isolate"> & {
  waitUntil(work: Promise<unknown>): void;
};

/** Throws when one of the queues was full at the last read. Before the first read every queue is accepted. */
export function checkDepth(invocation: Invocation, queues: Iterable<string>): void {
  const { ports, settings, isolate, waitUntil } = invocation;
  const { readAtMs, byQueue } = isolate.depths ?? { readAtMs: 0, byQueue: new Map<string, number>() };
  const nowMs = ports.clock.nowMs();
  if (nowMs - readAtMs >= readEveryMs) {
    // The time is set before the read, so that only one of many requests reads.
    isolate.depths = { readAtMs: nowMs, byQueue };
    waitUntil(readDepths(invocation));
  }
  for (const queue of queues) {
    const depth = byQueue.get(queue) ?? 0;
    if (depth < settings.maxDepth) continue;
    throw new SluiceError(
      "queue_full",
      `the queue "${queue}" has ${depth} waiting jobs; the limit is ${settings.maxDepth}`,
    );
  }
}

async function readDepths({ ports, isolate }: Invocation): Promise<void> {
  try {
    const rows = await ports.db.run(depths());
    const byQueue = new Map(rows.map((row) => [row.queue, row.pending]));
    isolate.depths = { readAtMs: ports.clock.nowMs(), byQueue };
  } catch (error) {
    ports.log.warn("depths not read", describeError(error));
  }
}
