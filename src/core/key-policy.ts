// What a deployment says about a queue's keys: strict order for jobs with a partition key, and shares for jobs with a fair
// key. Every claim brings it along, so that the database has the rules of the newest deployment.

export interface KeyPolicy {
  /** Whether a dead job stops the next jobs of its partition key until it is replayed or discarded. */
  onDead: "block" | "pass";
  /** The most jobs of one fair key that run at one time. Null: no limit. */
  concurrency: number | null;
  /** The time between the starts of two jobs of one fair key. Null: none. */
  secondsApart: number | null;
}

export interface QueuePolicy extends KeyPolicy {
  /** The most consecutive jobs of one partition key that one claim of a drain takes. */
  maxRun: number;
}

export const defaultQueuePolicy: QueuePolicy = {
  onDead: "block",
  concurrency: null,
  secondsApart: null,
  maxRun: 100,
};

/** The longest lease of a job with a partition key. If its worker dies, the jobs behind it wait no longer than this. */
export const orderedLeaseSeconds = 90;
