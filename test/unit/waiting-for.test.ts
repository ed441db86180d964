// The sentences that tell people why a job waits.
import { describe, expect, test } from "vitest";
import { describeWaiting, type WaitingJob, type WaitingReason } from "../../src/core/policy/waiting-for.ts";

const at = "2026-03-04T12:00:05.678+00:00";
const id = "01900000-0000-7000-8000-000000000000";
const job: WaitingJob = { type: "mail", queue: "orders", partitionKey: "customer 7", takenBy: "drain" };
const sentence = (reason: WaitingReason, fields: Partial<WaitingJob> = {}) =>
  describeWaiting({ ...job, ...fields }, reason).detail;

describe("each reason has its sentence", () => {
  test.each<[string, WaitingReason]>([
    ["It is not due before 2026-03-04 12:00:05 UTC.", { kind: "time", at, attempt: 0 }],
    [
      "It waits for its retry at 2026-03-04 12:00:05 UTC, after attempt 2 failed.",
      { kind: "time", at, attempt: 2 },
    ],
    [
      `Job ${id} of the partition key "customer 7" has been dead since 2026-03-04 12:00:05 UTC. It blocks the key until it is replayed or discarded.`,
      { kind: "key", holder: "dead", jobIds: [id], at },
    ],
    [
      `It waits for job ${id} of the partition key "customer 7", which waits for its retry at 2026-03-04 12:00:05 UTC.`,
      { kind: "key", holder: "scheduled", jobIds: [id], at, attempt: 1 },
    ],
    [
      `It waits for job ${id} of the partition key "customer 7", which is due at 2026-03-04 12:00:05 UTC.`,
      { kind: "key", holder: "scheduled", jobIds: [id], at, attempt: 0 },
    ],
    [
      `It waits for job ${id} of the partition key "customer 7", which is running.`,
      { kind: "key", holder: "leased", jobIds: [id] },
    ],
    [
      'It waits for 2 jobs of the partition key "customer 7", which run one after another.',
      { kind: "key", holder: "leased", jobIds: [id, id] },
    ],
    [
      `It waits for job ${id} of the partition key "customer 7", which is next.`,
      { kind: "key", holder: "ready", jobIds: [id] },
    ],
    [
      `It waits for job ${id} of the partition key "customer 7", which comes before it.`,
      { kind: "key", holder: "waiting", jobIds: [id] },
    ],
    [
      'The queue "orders" has been paused since 2026-03-04 12:00:05 UTC.',
      { kind: "pause", paused: "queue", since: at },
    ],
    [
      'The type "mail" has been paused since 2026-03-04 12:00:05 UTC.',
      { kind: "pause", paused: "type", since: at },
    ],
    [
      'The circuit breaker of the type "mail" has been open since 2026-03-04 12:00:05 UTC. One job a minute runs as a probe.',
      { kind: "breaker", state: "open", since: at },
    ],
    [
      'The circuit breaker of the type "mail" closed at 2026-03-04 12:00:05 UTC. It lets jobs through in growing steps.',
      { kind: "breaker", state: "closing", since: at },
    ],
    [
      'The type "mail" runs at most 1 job at one time, and as many are running.',
      { kind: "limit", limited: "concurrency", max: 1 },
    ],
    [
      'The type "mail" starts at most 10 jobs in 60 s, and as many have started.',
      { kind: "limit", limited: "rate", max: 10, seconds: 60 },
    ],
    [
      'The fair key "tenant 1" runs at most 4 jobs at one time, and as many are running.',
      { kind: "limit", limited: "share_concurrency", max: 4, fairKey: "tenant 1" },
    ],
    [
      'The fair key "tenant 1" has a rate. Its next job starts at 2026-03-04 12:00:05 UTC or later.',
      { kind: "limit", limited: "share_rate", at, fairKey: "tenant 1" },
    ],
    ["Nothing holds it. A drain takes it when its turn comes.", { kind: "turn", isIsolated: false }],
    [
      "Its lease ran out before, so it runs apart from other jobs. A drain takes it when its turn comes.",
      { kind: "turn", isIsolated: true },
    ],
  ])("%s", (text, reason) => {
    expect(sentence(reason)).toBe(text);
  });

  test("a job whose type a puller works on waits for a puller", () => {
    expect(sentence({ kind: "turn", isIsolated: false }, { takenBy: "puller" })).toBe(
      "Nothing holds it. A puller takes it when its turn comes.",
    );
  });

  test("a job whose type is not deployed is taken by nobody, and the sentence says so", () => {
    expect(sentence({ kind: "turn", isIsolated: false }, { takenBy: null })).toBe(
      'Nothing holds it, but this deployment has no job type "mail", so no drain takes it.',
    );
  });
});

test("only a job that waits for its key names other jobs", () => {
  expect(describeWaiting(job, { kind: "key", holder: "leased", jobIds: [id] }).jobIds).toEqual([id]);
  expect(describeWaiting(job, { kind: "time", at, attempt: 0 }).jobIds).toEqual([]);
});
