// Jobs that wait for each other, by the functions of SQL, for tests of flows. A job's name is in its payload.
import type pg from "pg";

export interface FlowRequest {
  ref: string;
  after?: readonly unknown[] | Record<string, readonly unknown[]>;
  on_blocker_dead?: "die" | "run";
  [option: string]: unknown;
}

export interface Held {
  id: string;
  key: string;
  name: string;
  blockers: Record<string, { job_id: string; status: string; output: unknown }[]> | null;
}

export interface Outcome {
  outcome: "complete" | "retry" | "bury" | "snooze" | "release" | "suspend";
  [field: string]: unknown;
}

export interface Counts {
  blocked: number;
  pending: number;
  processing: number;
  completed: number;
  dead: number;
  cancelled: number;
  discarded: number;
}

export interface Flow {
  flow_id: string;
  status: string;
  total: number;
  counts: Counts;
}

interface Answer {
  key: string | null;
  has_more: boolean;
  settled: (string | null)[] | null;
  leases: { blockers: Record<string, Held["blockers"]> | null; jobs: [string, { name?: string }][] }[] | null;
}

export interface ClaimOptions {
  queue?: string;
  limit?: number;
  run?: number;
  types?: string[];
  seconds?: number;
}

export const complete: Outcome = { outcome: "complete" };
export const bury: Outcome = { outcome: "bury", message: "no use" };

export type FlowJobs = ReturnType<typeof flowJobsOf>;

export function flowJobsOf(pool: pg.Pool | pg.ClientBase) {
  const value = async <T>(text: string, values: unknown[] = []): Promise<T> =>
    Object.values((await pool.query(text, values)).rows[0] ?? {})[0] as T;
  const claim = async (options: ClaimOptions = {}) => {
    const { queue = "default", limit = 100, run = 1, types = ["echo"], seconds = 300 } = options;
    const answer = await value<Answer>(
      "select sluice.claim($1, $2, $3, $4, p_run => $5, p_worker => 'test')",
      [queue, types, limit, seconds, run],
    );
    return heldIn(answer);
  };
  /** Completes as a drain does, with no outcomes. The answers are in the order of the jobs. */
  const completeAll = async (held: readonly Held[]) => {
    const inOrder = held.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const statuses = await value<(string | null)[]>("select sluice.settle($1, $2)", [
      inOrder.map(({ id }) => id),
      inOrder.map(({ key }) => key),
    ]);
    return held.map((job) => statuses[inOrder.indexOf(job)] ?? null);
  };
  return {
    value,
    claim,
    complete: completeAll,
    /** Enqueues a flow, and answers with the ids by their refs. */
    flow: async (...requests: FlowRequest[]) => {
      const list = requests.map((job) => ({ type: "echo", payload: { name: job.ref }, ...job }));
      const answer = await value<{ flow_id: string; jobs: { ref: string; id: string; status: string }[] }>(
        "select sluice.enqueue_flow($1)",
        [JSON.stringify(list)],
      );
      const ids = Object.fromEntries(answer.jobs.map(({ ref, id }) => [ref, id])) as Record<string, string>;
      return { ids, flowId: answer.flow_id, jobs: answer.jobs };
    },
    /** Enqueues one job, by `enqueue`. */
    add: async (name: string, options: Record<string, unknown> = {}) => {
      const { type = "echo", ...others } = options;
      const names = Object.keys(others);
      const values = Object.values(others).map((option) =>
        typeof option === "object" && !(option instanceof Date) ? JSON.stringify(option) : option,
      );
      const list = names.map((option, index) => `, ${option} => $${index + 3}`).join("");
      return value<string>(`select sluice.enqueue($1, $2${list})`, [type, { name }, ...values]);
    },
    /** Settles jobs with one outcome, or with one for each. */
    settle: async (held: readonly Held[], outcome: Outcome | readonly Outcome[] = complete) =>
      value<(string | null)[]>("select sluice.settle($1, $2, $3)", [
        held.map(({ id }) => id),
        held.map(({ key }) => key),
        JSON.stringify(held.map((_, index) => ("outcome" in outcome ? outcome : outcome[index]))),
      ]),
    /** Claims and completes until nothing is left. Answers with the names, those of one claim in one text. */
    drain: async (options: ClaimOptions = {}) => {
      const claims: string[] = [];
      for (;;) {
        const held = await claim(options);
        if (held.length === 0) return claims.join(", ");
        claims.push(names(held));
        await completeAll(held);
      }
    },
    status: async (id: string | undefined) =>
      value<string>("select status from sluice.jobs where id = $1", [id]),
    waitingFor: async (id: string | undefined) =>
      value<Record<string, unknown>>("select sluice.waiting_for($1)", [id]),
    find: async (flowId: string) => value<Flow>("select sluice.find_flow($1)", [flowId]),
    cancel: async (id: string | undefined) =>
      (await value<{ applied: boolean } | null>("select sluice.cancel($1)", [id]))?.applied ?? false,
    replay: async (id: string | undefined) =>
      (await value<{ applied: boolean } | null>("select sluice.replay('ann', $1)", [id]))?.applied ?? false,
    discard: async (id: string | undefined) =>
      (await value<{ applied: boolean } | null>("select sluice.discard('ann', $1)", [id]))?.applied ?? false,
    resolve: async (id: string | undefined, output: unknown = null) =>
      (
        await value<{ applied: boolean } | null>("select sluice.resolve($1, $2)", [
          ...[id, JSON.stringify(output)],
        ])
      )?.applied ?? false,
    signal: async (name: string, key: string, payload: unknown = null) =>
      value<boolean>("select sluice.signal($1, $2, $3)", [name, key, JSON.stringify(payload)]),
    /** What is scheduled becomes due now. */
    makeDue: async () => {
      await pool.query("update sluice.scheduled set run_at = statement_timestamp() - interval '1 ms'");
      await pool.query("select sluice.reset_cursors()");
    },
  };
}

function heldIn({ key, leases }: Answer): Held[] {
  return (leases ?? []).flatMap(({ jobs, blockers }) =>
    jobs.map(([id, payload]) => ({
      ...{ id, key: key as string, name: payload.name ?? "" },
      blockers: blockers?.[id] ?? null,
    })),
  );
}

export const names = (held: readonly Held[]) =>
  held
    .map(({ name }) => name)
    .toSorted()
    .join(" ");

/** The one job of this name. */
export function named(held: readonly Held[], name: string): Held {
  const job = held.find((one) => one.name === name);
  if (!job) throw new Error(`${name} is not among ${names(held)}`);
  return job;
}
