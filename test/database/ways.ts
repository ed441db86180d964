// The ways from a Database port to the test's Postgres.

import { createDatabase } from "../../src/edge/database/create-database.ts";
import type { Transport } from "../../src/edge/database/transport.ts";
import { createPgTransport } from "../../src/edge/hyperdrive/pg-transport.ts";
import { type IsolateState, isolateStateFor } from "../../src/edge/isolate-state.ts";
import { createNeonTransport } from "../../src/edge/neon/neon-transport.ts";
import { startNeonProxy } from "../../src/local/neon-proxy.ts";
import type { Database } from "../../src/queue/ports.ts";
import { startTransactionPooler } from "../support/transaction-pooler.ts";

export interface OpenedWay {
  transport: Transport;
  close(): Promise<void>;
}
export type Way = (url: string) => Promise<OpenedWay>;

/** The driver has one endpoint for the whole process, so one of these is open at a time. */
export const byNeon: Way = async (url) => {
  const proxy = await startNeonProxy({ postgresPort: Number(new URL(url).port) });
  const transport = createNeonTransport({ databaseUrl: url, neonEndpoint: proxy.endpoint });
  return { transport, close: proxy.close };
};

export const byPg: Way = async (url) => {
  const transport = createPgTransport(url);
  return { transport, close: transport.close };
};

/** As Hyperdrive and PgBouncer do: a server connection belongs to a client for one transaction. */
export const byPooler: Way = async (url) => {
  const pooler = await startTransactionPooler(url, 3);
  const transport = createPgTransport(pooler.url);
  return {
    transport,
    close: async () => {
      await transport.close();
      await pooler.close();
    },
  };
};

let isolates = 0;

export function newIsolate(): IsolateState {
  return isolateStateFor({
    databaseUrl: `isolate_${isolates++}`,
    hyperdriveUrl: undefined,
    schema: "sluice",
  });
}

export function openDatabase(
  transport: Transport,
  options: { timeoutMs?: number; isolate?: IsolateState } = {},
): Database {
  const { timeoutMs = 60_000, isolate = newIsolate() } = options;
  return createDatabase(transport, { schema: "sluice", timeoutMs, isolate });
}
