// Backpressure: a queue that is too deep takes no more over HTTP. The depths are read from the books, after a
// response and at most every few seconds, so that no enqueue waits for them; in between, plain data of the isolate.
import { describeError } from "../../../core/database-errors.ts";
import { SluiceError } from "../../../core/errors.ts";
import { depths } from "../../../core/sql/index.ts";
import type { Ports } from "../../../queue/ports.ts";
import type { Settings } from "../../settings/env.ts";

const knownForMs = 5_000;

interface Known {
  readAtMs: number;
  byQueue: ReadonlyMap<string, number>;
}

/** By database: tests have several. */
const known = new Map<string, Known>();

export interface DepthLimit {
  ports: Ports;
  settings: Settings;
  waitUntil(work: Promise<unknown>): void;
}

/** Throws when a queue is known to be full. What is not known yet is let through. */
export function checkDepth({ ports, settings, waitUntil }: DepthLimit, names: Iterable<string>): void {
  const last = known.get(settings.databaseUrl);
  const nowMs = ports.clock.nowMs();
  if (!last || nowMs - last.readAtMs >= knownForMs) {
    // Marked as read before it is, so that one request of many asks.
    known.set(settings.databaseUrl, { readAtMs: nowMs, byQueue: last?.byQueue ?? new Map() });
    waitUntil(readDepths(ports, settings));
  }
  for (const name of names) {
    const depth = last?.byQueue.get(name) ?? 0;
    if (depth < settings.maxDepth) continue;
    throw new SluiceError(
      "queue_full",
      `the queue "${name}" has ${depth} jobs waiting, ${settings.maxDepth} are allowed`,
    );
  }
}

async function readDepths(ports: Ports, settings: Settings): Promise<void> {
  try {
    const rows = await ports.db.run(depths());
    const byQueue = new Map(rows.map((row) => [row.queue, row.pending]));
    known.set(settings.databaseUrl, { readAtMs: ports.clock.nowMs(), byQueue });
  } catch (error) {
    ports.log.warn("depths not read", describeError(error));
  }
}
