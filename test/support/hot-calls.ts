// The buffers that each frequent call may touch in a large queue. A buffer is an 8 KiB page, counted each time it is read.
// The limits are the same for 100,000 jobs and for a million.
import type pg from "pg";
import { reapLeases } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";
import { type ClaimedRow, type HeldJobs, heldOf } from "./churn.ts";
import { commonTag, commonTypes, rareType } from "./large-queue.ts";

export interface HotCall {
  name: string;
  text: string;
  /** Prepares the rows that the call needs, and returns its parameters. */
  values(client: pg.ClientBase): Promise<unknown[]> | unknown[];
  buffers: number;
  /** The indexes that the call must use. */
  indexes: readonly string[];
}

const types = [...commonTypes, rareType];
const claim = "select sluice.claim('default', $1, $2, 600) as claimed";
const settle = "select sluice.settle($1, $2, $3)";
const enqueue = "select * from sluice.enqueue_jobs($1)";
const extend = "select * from sluice.extend($1, $2, 600)";
const cancel = "select sluice.cancel($1)";
const replay = "select sluice.replay('ann', $1)";
const discard = "select sluice.discard('ann', $1)";
const settleOne = "select sluice.settle_one($1, $2)";
const extendOne = "select sluice.extend_one($1, $2, 600)";
const checkpoint = 'select sluice.checkpoint($1, $2, \'[{"name": "one", "value": 1}]\', 600)';
const stop = "select sluice.cancel($1, null, true)";
const find = "select * from sluice.find_job($1)";
const waitingFor = 'select sluice.waiting_for($1, \'{"mail": {"concurrency": 1000}}\')';
const reap = (limit: number) => compile(reapLeases({ limit }));
const groups = "select * from sluice.dead_groups(null, null, null, 100)";
const deadLetters = "select * from sluice.dead_letters($1, null, $2, null, null, null, null, null, 100)";
const list = "select * from sluice.list_jobs($1, $2, $3, $4, $5, 100)";

const of = (
  name: string,
  text: string,
  values: HotCall["values"],
  buffers: number,
  indexes: readonly string[],
): HotCall => ({ name, text, values, buffers, indexes });

export const hotCalls: readonly HotCall[] = [
  of("claim 1", claim, () => [types, 1], 160, ["scheduled_in_order", "ready_in_order", "job_pkey"]),
  of("claim 100", claim, () => [types, 100], 700, ["scheduled_in_order", "ready_in_order", "job_pkey"]),
  of("claim 100 of one type", claim, () => [["mail"], 100], 600, [
    "scheduled_in_order",
    "ready_in_order",
    "job_pkey",
  ]),
  of("settle 100, mixed", settle, (c) => settlements(c, 100, mixed), 1_200, ["lease_by_key", "job_pkey"]),
  of("settle 1", settle, (c) => settlements(c, 1, ["complete"]), 40, ["lease_by_key"]),
  of("settle 100, all completed", settle, (c) => settlements(c, 100, ["complete"]), 80, ["lease_by_key"]),
  { name: "enqueue 1", text: enqueue, values: () => [alike(1)], buffers: 30, indexes: ["lane_by_name"] },
  of("enqueue 100", enqueue, () => [alike(100)], 1_300, ["lane_by_name"]),
  of("enqueue 100 of all types", enqueue, () => [newJobs(100)], 1_300, ["lane_by_name"]),
  of("enqueue 100, delayed, tagged, with keys", enqueue, () => [newJobs(100, full)], 4_500, [
    "idempotency_pkey",
    "job_pkey",
  ]),
  of("enqueue 100 whose idempotency keys exist", enqueue, () => [repeatedJobs], 4_500, [
    "idempotency_pkey",
    "ready_by_id",
  ]),
  of("extend 100", extend, (c) => claimHundred(c), 60, ["lease_by_key"]),
  of("extend 50 of 100", extend, async (c) => half(await claimHundred(c)), 60, ["lease_by_key"]),
  of("cancel a waiting job", cancel, (c) => idOf(c, "ready"), 100, ["ready_by_id", "job_pkey"]),
  of("cancel a scheduled job", cancel, (c) => idOf(c, "scheduled"), 100, ["scheduled_by_id", "job_pkey"]),
  of("cancel a running job", stop, async (c) => (await oneClaimed(c)).slice(0, 1), 300, [
    "lease_by_deadline",
    "job_pkey",
  ]),
  of("store a durable step", checkpoint, (c) => oneClaimed(c), 60, ["lease_by_key", "checkpoint_pkey"]),
  of("replay a dead job", replay, (c) => idOf(c, "closed"), 115, ["closed_pkey", "job_pkey"]),
  of("discard a dead job", discard, (c) => idOf(c, "closed"), 100, ["closed_pkey", "job_pkey"]),
  of("settle 1 and answer with it", settleOne, (c) => oneClaimed(c), 160, ["lease_by_key", "job_pkey"]),
  of("extend 1 and answer with it", extendOne, (c) => oneClaimed(c), 300, ["lease_by_key", "job_pkey"]),
  of("find a waiting job", find, (c) => idOf(c, "ready"), 60, ["job_pkey", "ready_by_id"]),
  of("find a scheduled job", find, (c) => idOf(c, "scheduled"), 60, ["job_pkey", "scheduled_by_id"]),
  of("find a dead job", find, (c) => idOf(c, "closed"), 70, ["job_pkey", "closed_pkey"]),
  of("find a completed job", find, (c) => packedIdOf(c, "done"), 120, ["job_pkey", "done_hi_id_lo_id_idx"]),
  of("find a job that is being processed", find, (c) => packedIdOf(c, "lease"), 250, [
    "job_pkey",
    "lease_by_deadline",
  ]),
  of("why does a job wait", waitingFor, (c) => idOf(c, "ready"), 60, ["ready_by_id", "lane_pkey"]),
  of("next due", "select * from sluice.next_due(true)", () => [], 30, [
    "scheduled_in_order",
    "lease_by_deadline",
  ]),
  of("reap leases, none ran out", reap(100).text, () => reap(100).values, 40, ["lease_by_deadline"]),
  of("reap 100 jobs of leases", reap(1).text, ranOut, 1_400, ["lease_by_deadline", "job_pkey"]),
  of("reap expired, none is", "select sluice.reap_expired(1000)", () => [], 60, [
    "expiry_in_order",
    "ready_by_id",
    "scheduled_by_id",
  ]),
  of("reap 100 expired", "select sluice.reap_expired(100)", expire, 3_400, ["expiry_in_order", "job_pkey"]),
  of("inspect", "select * from sluice.inspect()", () => [], 2_500, [
    "job_pkey",
    "lease_by_deadline",
    "ready_by_id",
  ]),
  of("snapshot", "select * from sluice.snapshot()", () => [], 660, ["ready_in_order", "job_pkey"]),
  of("advance cursors", "select sluice.advance_cursors()", () => [], 1_000, [
    "ready_in_order",
    "scheduled_in_order",
  ]),
  of("list groups of dead letters", groups, () => [], 2_200, ["closed_by_group", "dead_group_pkey"]),
  of("list dead letters", deadLetters, () => [null, null], 4_500, ["closed_by_group", "job_pkey"]),
  of("list dead letters of a type", deadLetters, () => ["mail", 0], 4_500, ["closed_by_group", "job_pkey"]),
  of("count dead letters", "select sluice.count_dead('mail', null, null, null)", () => [], 200, [
    "dead_group_pkey",
  ]),
  of("take 1 step of a run", "select sluice.advance_dead_runs(1)", startRun, 12_000, [
    "closed_by_death",
    "job_pkey",
  ]),
  { name: "list", text: list, values: () => filter({}), buffers: 4_000, indexes: ["job_pkey"] },
  of("list pending", list, () => filter({ status: "pending" }), 4_000, ["ready_by_id", "scheduled_by_id"]),
  of("list completed", list, () => filter({ status: "completed" }), 4_000, ["done_hi_id_lo_id_idx"]),
  of("list dead", list, () => filter({ status: "dead" }), 4_000, ["job_pkey"]),
  of("list a queue", list, () => filter({ queue: "heavy" }), 5_000, ["job_pkey"]),
  of("list a type", list, () => filter({ type: "mail" }), 5_000, ["job_pkey"]),
  of("list a type, completed", list, () => filter({ type: "mail", status: "completed" }), 4_000, [
    "done_hi_id_lo_id_idx",
  ]),
  of("list a type, dead", list, () => filter({ type: "mail", status: "dead" }), 4_000, ["job_pkey"]),
  of("list a tag", list, () => filter({ tag: commonTag }), 5_000, ["job_pkey"]),
  of("list the next page", list, nextPage, 5_000, ["done_hi_id_lo_id_idx"]),
];

const mixed = ["complete", "retry", "bury", "snooze", "release"] as const;
const full = { delay_seconds: 7_200, tags: ["new", "customer-1"] };
let keys = 0;

const payloadOf = (index: number) => ({
  ...{ customer: index, address: "someone@example.com", subject: "a subject of a common length" },
});

function alike(size: number): string {
  const payloads = Array.from({ length: size }, (_, index) => payloadOf(index));
  return JSON.stringify({ type: commonTypes[0], payloads });
}

function newJobs(size: number, fields?: typeof full): string {
  const job = (index: number) => ({
    type: commonTypes[index % commonTypes.length],
    payload: payloadOf(index),
    ...(fields && { ...fields, idempotency_key: `key ${keys++}` }),
  });
  return JSON.stringify(Array.from({ length: size }, (_, index) => job(index)));
}

const repeatedJobs = JSON.stringify(
  Array.from({ length: 100 }, (_, index) => ({
    type: "mail",
    payload: {},
    idempotency_key: `key of ${index}`,
  })),
);

async function claimed(client: pg.ClientBase, size: number): Promise<HeldJobs> {
  return heldOf((await client.query<ClaimedRow>(claim, [types, size])).rows);
}

async function settlements(
  client: pg.ClientBase,
  size: number,
  outcomes: readonly string[],
): Promise<unknown[]> {
  const { ids, keys } = await claimed(client, size);
  const settled = ids.map((_, index) => ({
    ...{ outcome: outcomes[index % outcomes.length], message: "busy", seconds: 3_600 },
  }));
  return [ids, keys, outcomes.length > 1 ? JSON.stringify(settled) : null];
}

async function claimHundred(client: pg.ClientBase): Promise<[ids: string[], keys: string[]]> {
  const { ids, keys } = await claimed(client, 100);
  return [ids, keys];
}

async function oneClaimed(client: pg.ClientBase): Promise<unknown[]> {
  const { ids, keys } = await claimed(client, 1);
  return [ids[0], keys[0]];
}

function half([ids, keys]: [string[], string[]]): unknown[] {
  return [ids.slice(ids.length / 2), keys.slice(ids.length / 2)];
}

/** A job from the middle, because the oldest and the newest may be found early by chance. */
/** It discards ten jobs, so that the other calls find enough. */
async function startRun(client: pg.ClientBase): Promise<unknown[]> {
  await client.query(
    "update sluice.dead_run set state = 'stopped', ended_at = now() where state = 'running'",
  );
  await client.query(
    "select sluice.start_dead_run('ann', 'discard', 'mail', null, null, null, null, 10, null, null, null)",
  );
  return [];
}

async function idOf(client: pg.ClientBase, table: "ready" | "scheduled" | "closed"): Promise<unknown[]> {
  const { rows } = await client.query(`select id from sluice.${table} limit 1 offset 1000`);
  return [rows[0].id];
}

async function packedIdOf(client: pg.ClientBase, table: "done" | "lease"): Promise<unknown[]> {
  const { rows } = await client.query(
    `select ids[1] as id from sluice.${table} order by ids limit 1 offset 20`,
  );
  return [rows[0].id];
}

async function ranOut(client: pg.ClientBase): Promise<unknown[]> {
  await client.query("select count(*) from sluice.claim('default', array['mail'], 100, -1)");
  return reap(1).values;
}

async function expire(client: pg.ClientBase): Promise<unknown[]> {
  await client.query(`
    with expired as (
      update sluice.job set expires_at = now()
      where id = any(array(select id from sluice.ready order by id desc limit 100))
      returning expires_at, id
    )
    insert into sluice.expiry (expires_at, id) select expires_at, id from expired`);
  return [];
}

interface Filter {
  type?: string;
  status?: string;
  queue?: string;
  tag?: string;
  before?: string;
}

function filter({ type, status, queue, tag, before }: Filter): unknown[] {
  return [type ? [type] : null, status ?? null, queue ?? null, tag ?? null, before ?? null];
}

async function nextPage(client: pg.ClientBase): Promise<unknown[]> {
  const { rows } = await client.query(list, filter({ status: "completed" }));
  return filter({ status: "completed", before: rows.at(-1).id });
}
