// The contract of the Database port through a real PgBouncer in transaction mode (Debian's package `pgbouncer`).
import { createPgTransport } from "../../src/edge/hyperdrive/pg-transport.ts";
import { startPgBouncer } from "../support/pgbouncer.ts";
import { databaseContract } from "./database-contract.ts";

databaseContract("by pg through PgBouncer", async (url) => {
  const pgbouncer = await startPgBouncer(url);
  const transport = createPgTransport(pgbouncer.url);
  return {
    transport,
    close: async () => {
      await transport.close();
      await pgbouncer.stop();
    },
  };
});
