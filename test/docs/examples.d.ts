// What the blocks of the documentation take for granted: an app's own tables and functions, and names that an earlier block
// of the same page has imported or defined.
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { PgTable } from "drizzle-orm/pg-core";
import type { ClientBase } from "pg";
import type { Sql } from "postgres";
import type * as lib from "sluice";
import type { Client } from "sluice/client";
import type * as inTransaction from "sluice/sql";
import type { Transaction } from "sluice/sql";
import type * as zod from "zod";

type Type<Payload extends object, Output = null> = lib.JobDefinition<
  zod.ZodType<Payload, Payload>,
  Output,
  Record<never, never>
>;

declare global {
  const z: typeof zod;
  const defineJob: typeof lib.defineJob;
  const defineQueue: typeof lib.defineQueue;
  const sluice: typeof lib.sluice;
  const enqueue: typeof inTransaction.enqueue;
  const enqueueMany: typeof inTransaction.enqueueMany;
  const enqueueFlow: typeof inTransaction.enqueueFlow;

  // The app.
  const env: { DATABASE_URL: string; SLUICE_URL: string; SLUICE_KEY: string };
  const ctx: { waitUntil(promise: Promise<unknown>): void };
  const db: NodePgDatabase;
  const tx: Transaction;
  const client: ClientBase;
  const sql: Sql;
  const queue: Client;
  const form: { name: string };
  const users: PgTable & { $inferInsert: { name: string }; $inferSelect: { id: string } };
  const bookings: PgTable & { $inferInsert: { orderId: string } };
  const imports: PgTable & { $inferInsert: { flowId: string; jobId: string } };
  const [userId, orderId, reportId, customerId, pageId, siteId, accountId]: string[];
  const files: string[];
  function sendMail(env: unknown, userId: string, signal: AbortSignal): Promise<void>;
  function chargeCard(orderId: unknown, signal: AbortSignal): Promise<null>;
  function more(page: number): Promise<boolean>;
  function index(pageIds: string[]): Promise<void>;
  const charges: { create(orderId: string): Promise<{ id: string }> };

  // Job types of the pages.
  const extract: Type<{ file: string }, { rows: number }>;
  const plan: Type<{ table: string }, { parts: number }>;
  const load: lib.JobDefinition<
    zod.ZodType<{ table: string }, { table: string }>,
    { rows: number },
    { parts: [typeof extract]; plan: typeof plan }
  >;
  const publish: Type<{ pages: number }>;
  const render: Type<{ file: string }>;
  const report: Type<{ kind: string }>;
  const indexPage: Type<{ pageId: string }>;
  const syncAccount: Type<{ accountId: string }>;
  const shipOrder: Type<{ orderId: string }>;
  const makeReport: Type<{ reportId: string }>;
  const jobs: readonly lib.JobDefinition[];
}
