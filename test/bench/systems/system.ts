// What the bench needs from a queue. Each system has one file, which uses the system's public interface as its
// documentation recommends for throughput.

export interface System {
  readonly name: string;
  readonly version: string;
  /** The tables that a report on the queue would read. */
  readonly hotTables: readonly string[];
  /** The tables that a report on jobs would read, with finished jobs. */
  readonly jobTables: readonly string[];
  /** What it can do with keys. Left out: nothing. */
  readonly keyUses?: readonly KeyUse[];
  /** Installs its tables and one queue in a new database, and one more for each use of keys where it needs that. */
  install(url: string): Promise<void>;
  open(url: string, keys?: Keys): Promise<OpenQueue>;
}

/** ordered: jobs of one key run one at a time, in their order. shared: keys take turns. */
export type KeyUse = "ordered" | "shared";

/** Without it a payload's key means nothing to the system. */
export interface Keys {
  use: KeyUse;
  /** Of a shared key: the most jobs at one time. */
  cap?: number;
}

export interface OpenQueue {
  /** Enqueues all in one call. Up to `producers` calls run at one time. */
  enqueue(payloads: readonly BenchPayload[]): Promise<void>;
  /** Claims and settles on the given number of connections, until it is stopped. */
  work(options: WorkOptions): Promise<Worker>;
  /** Writes a backlog on the server: mixed priorities if the system has them, and jobs due in an hour. */
  fill(size: { waiting: number; scheduled: number }): Promise<void>;
  /** The number of unfinished jobs in the system's own tables. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

/** About 110 bytes as JSON. */
export interface BenchPayload {
  n: number;
  atMs: number;
  address: string;
  subject: string;
  key?: string;
}

export interface WorkOptions {
  batch: number;
  connections: number;
  /** False if the job failed and should be retried as soon as possible. */
  run(payload: BenchPayload): boolean;
  /** Called for each claim that found jobs. */
  onClaim?(claim: { ms: number; jobs: number }): void;
}

export interface Worker {
  /** When its connections were open and nothing was claimed yet. */
  readonly startedMs: number;
  /** When the last job was settled. */
  settledMs(): number;
  /** Returns when all claimed jobs are settled. */
  stop(): Promise<void>;
}

export const producers = 4;
/** How long a worker waits after it found nothing. */
export const idleMs = 5;
/** Long enough that no lease runs out in a run. */
export const leaseSeconds = 1_800;

export function payloadOf(n: number, key?: string): BenchPayload {
  return {
    n,
    atMs: performance.now(),
    address: "someone@example.com",
    subject: "a subject of a common length",
    ...(key === undefined ? {} : { key }),
  };
}
