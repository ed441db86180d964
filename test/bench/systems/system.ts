// What the bench asks of a queue. Each system has one file that answers by the system's public interface, used as its
// own documentation recommends for throughput.

export interface System {
  readonly name: string;
  readonly version: string;
  /** What a report on the queue would read. */
  readonly hotTables: readonly string[];
  /** Whatever a report on jobs would read, the finished ones included. */
  readonly jobTables: readonly string[];
  /** Its tables, and one queue, in a new database. */
  install(url: string): Promise<void>;
  open(url: string): Promise<OpenQueue>;
}

export interface OpenQueue {
  /** In one call. Up to `producers` calls at one time. */
  enqueue(payloads: readonly BenchPayload[]): Promise<void>;
  /** Claims and settles on so many connections, until it is stopped. */
  work(options: WorkOptions): Promise<Worker>;
  /** A backlog, written by the server: mixed priorities where the system has them, and jobs due in an hour. */
  fill(size: { waiting: number; scheduled: number }): Promise<void>;
  /** Jobs that are not finished, as the system's own tables have it. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

/** About 110 bytes as JSON. */
export interface BenchPayload {
  n: number;
  atMs: number;
  address: string;
  subject: string;
}

export interface WorkOptions {
  batch: number;
  connections: number;
  /** False: the job failed and is to be tried again, as soon as the system can. */
  run(payload: BenchPayload): boolean;
  /** A claim that found something: how long it took, and how many jobs. */
  onClaim?(claim: { ms: number; jobs: number }): void;
}

export interface Worker {
  /** Its connections were open, and nothing was claimed yet. */
  readonly startedMs: number;
  /** When the last job was settled. */
  settledMs(): number;
  /** Returns when all that was claimed is settled. */
  stop(): Promise<void>;
}

export const producers = 4;
/** How long a worker rests that found nothing. */
export const idleMs = 5;
/** Long enough that no lease runs out in a run. */
export const leaseSeconds = 1_800;

export function payloadOf(n: number): BenchPayload {
  return {
    n,
    atMs: performance.now(),
    address: "someone@example.com",
    subject: "a subject of a common length",
  };
}
