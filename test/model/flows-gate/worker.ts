// A worker of the flows' gate: claims, looks whether every blocker has ended, and settles in every way there is.
import { setTimeout as wait } from "node:timers/promises";
import { type FlowJobs, flowJobsOf, type Held, type Outcome } from "../../support/flow-jobs.ts";
import type { SeededRandom } from "../../support/seeded-random.ts";
import { type Actor, newQueue, queues, recent } from "./actors.ts";
import { count, type FlowsGate } from "./flows-gate.ts";

let signals = 0;

function suspended(gate: FlowsGate, random: SeededRandom): Outcome {
  count(gate, "suspends");
  const seconds = random.isLikely(0.7) ? random.next() / 2 : undefined;
  if (random.isLikely(0.3))
    return { outcome: "suspend", seconds: seconds ?? 1, jobs: recent(gate.known, random, 3) };
  const key = `${++signals}`;
  gate.signals.add(key);
  return { outcome: "suspend", seconds, signal: { name: "go", key } };
}

function continued(gate: FlowsGate, random: SeededRandom): Outcome {
  count(gate, "continuations");
  const tags = random.isLikely(0.2) ? { tags: ["long way"] } : {};
  const next = {
    type: "echo",
    queue: random.pick(queues),
    payload: { name: "next" },
    max_attempts: 2,
    ...tags,
  };
  return { outcome: "complete", output: { n: 1 }, next };
}

/** Such a settle takes whole leases, and some of the jobs go on. */
const completions = (gate: FlowsGate, random: SeededRandom, held: readonly Held[]): Outcome[] =>
  held.map(() => (random.isLikely(0.3) ? continued(gate, random) : { outcome: "complete" }));

function randomOutcome(gate: FlowsGate, random: SeededRandom): Outcome | null {
  const number = random.next();
  if (number < 0.1) return continued(gate, random);
  if (number < 0.18) return suspended(gate, random);
  if (number < 0.24) return { outcome: "retry", message: "again", seconds: random.next() / 10 };
  if (number < 0.28) return { outcome: "bury", message: "no use" };
  if (number < 0.31) return { outcome: "release" };
  if (number < 0.33) return null; // it is abandoned: the reaper takes it
  return { outcome: "complete" };
}

/** A completed blocker stays so. One that ended otherwise may be alive again, but only a job that does not die with it runs. */
export function noteEarly(gate: FlowsGate, held: readonly Held[]): void {
  for (const { id, name, blockers } of held.filter((job) => job.name === "die"))
    for (const { job_id, status } of Object.values(blockers ?? {}).flat())
      if (status !== "completed") gate.early.push(`${id} (${name}) before ${job_id}, which is ${status}`);
}

async function settleAll(
  gate: FlowsGate,
  jobs: FlowJobs,
  held: readonly Held[],
  outcomes: readonly Outcome[],
) {
  if (held.length === 0) return;
  noteCompleted(gate, held, await jobs.settle(held, outcomes));
}

export async function completeAll(gate: FlowsGate, jobs: FlowJobs, held: readonly Held[]): Promise<void> {
  if (held.length > 0) noteCompleted(gate, held, await jobs.complete(held));
}

function noteCompleted(gate: FlowsGate, held: readonly Held[], statuses: readonly (string | null)[]): void {
  for (const [index, { id }] of held.entries())
    if (statuses[index] === "completed") gate.completed.set(id, (gate.completed.get(id) ?? 0) + 1);
}

export function createWorker(): Actor {
  return async (gate, random) => {
    const jobs = flowJobsOf(gate.pool);
    const queue = random.isLikely(0.3) ? newQueue(gate, random) : random.pick(queues);
    const held = await jobs.claim({ queue, limit: random.int(1, 12), run: random.int(1, 3) });
    noteEarly(gate, held);
    if (held.length === 0) return random.int(1, 15);
    count(gate, "claims");
    // The outcomes are known before the work: a signal may be sent before the job that waits for it is settled, or at that moment.
    const way = random.next();
    const outcomes =
      way < 0.4
        ? null
        : way < 0.5
          ? completions(gate, random, held)
          : held.map(() => randomOutcome(gate, random));
    // Work in a new queue is slow: its leases are older than the queue's lane of ends when somebody begins to wait.
    await wait(random.next() ** 2 * (queue.startsWith("new") ? 250 : 15));
    if (!outcomes) {
      await completeAll(gate, jobs, held);
      return random.int(0, 3);
    }
    const settled = held.filter((_, index) => outcomes[index] !== null);
    await settleAll(
      gate,
      jobs,
      settled,
      outcomes.filter((outcome) => outcome !== null),
    );
    return random.int(0, 3);
  };
}
