// claim deliveries, settle deliveries, list deliveries, prune deliveries. See migrations/functions/deliver.sql.
import type { RowOf } from "./column.ts";
import { decodeColumns, listColumns } from "./columns.ts";
import { delivery } from "./schema.ts";
import { sql } from "./sql.ts";
import { many, one, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

/** Its id is the webhook-id. */
export type ClaimedDelivery = RowOf<typeof delivery>;

export function claimDeliveries(options: {
  targets: readonly { name: string; urlHash: string }[];
  limit: number;
  leaseSeconds: number;
}): Statement<ClaimedDelivery[]> {
  const targets = options.targets.map(({ name, urlHash }) => ({ name, url_hash: urlHash }));
  return {
    name: "claim deliveries",
    isRepeatable: true, // deliveries of a lost answer can be claimed again when their lease has ended
    build: (schema) => sql`
      select ${listColumns(delivery)}
      from ${schema}.claim_deliveries(
        ${JSON.stringify(targets)}::jsonb, ${options.limit}::int, ${options.leaseSeconds}::float8)`,
    decode: many(decodeColumns(delivery)),
  };
}

export interface DeliveryResult {
  /** Null for a test notice, which is no delivery. */
  delivery: { id: string; tries: number } | null;
  target: string;
  urlHash: string;
  /** `gone` means that the target answered 410. */
  outcome: "delivered" | "retry" | "gone";
  status: number | null;
  error: string | null;
  retryInSeconds: number | null;
}

/** Answers how many deliveries were settled. */
export function settleDeliveries(results: readonly DeliveryResult[]): Statement<number> {
  const rows = results.map(({ delivery, urlHash, retryInSeconds, ...rest }) => ({
    ...rest,
    id: delivery?.id ?? null,
    tries: delivery?.tries ?? null,
    url_hash: urlHash,
    retry_in_seconds: retryInSeconds,
  }));
  return {
    name: "settle deliveries",
    isRepeatable: true,
    build: (schema) => sql`select ${schema}.settle_deliveries(${JSON.stringify(rows)}::jsonb) as settled`,
    decode: one((row) => Number(row.settled)),
  };
}

/** What became of a notice to one target. */
export interface Delivery {
  /** Its place in the list. */
  seq: string;
  id: string;
  target: string;
  alarm: string;
  queue: string | null;
  jobType: string | null;
  noticeType: string;
  createdAt: Date;
  state: "pending" | "delivered" | "given_up";
  tries: number;
  /** Null: it has ended. */
  nextTryAt: Date | null;
  endedAt: Date | null;
  /** Of the last answer. */
  status: number | null;
  error: string | null;
}

/** Newest first. `before` is the last `seq` of the previous page. */
export function listDeliveries(page: { before?: string | undefined; limit: number }): Statement<Delivery[]> {
  return {
    name: "list deliveries",
    isRepeatable: true,
    build: (schema) => sql`
      select seq, id, target, alarm, queue, job_type, notice_type, ${time("created_at")}, state, tries,
             ${time("next_try_at")}, ${time("ended_at")}, status, error
      from ${schema}.list_deliveries(${page.before ?? null}::bigint, ${page.limit}::int)`,
    decode: many((row) => ({
      seq: String(row.seq),
      id: String(row.id),
      target: String(row.target),
      alarm: String(row.alarm),
      queue: row.queue as string | null,
      jobType: row.job_type as string | null,
      noticeType: String(row.notice_type),
      createdAt: timeOf(row.created_at),
      state: row.state as Delivery["state"],
      tries: Number(row.tries),
      nextTryAt: timeOrNull(row.next_try_at),
      endedAt: timeOrNull(row.ended_at),
      status: row.status as number | null,
      error: row.error as string | null,
    })),
  };
}

export function pruneDeliveries(options: {
  giveUpDays: number;
  keepDays: number;
  limit: number;
}): Statement<{ givenUp: number; pruned: number }> {
  return {
    name: "prune deliveries",
    isRepeatable: true,
    build: (schema) => sql`
      select given_up, pruned
      from ${schema}.prune_deliveries(
        ${options.giveUpDays}::int, ${options.keepDays}::int, ${options.limit}::int)`,
    decode: one((row) => ({ givenUp: Number(row.given_up), pruned: Number(row.pruned) })),
  };
}
