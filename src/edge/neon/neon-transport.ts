// The transport over Neon's HTTP driver. Each call is one POST, so there is nothing to close.
import { NeonDbError, neon, neonConfig } from "@neondatabase/serverless";
import { SluiceError } from "../../core/errors.ts";
import type { Row } from "../../core/sql/statement.ts";
import type { DatabaseKind, Transport } from "../database/transport.ts";
import type { Settings } from "../settings/env.ts";
import { isNeonMissing } from "./neon-protocol.ts";

const driverEndpoint = neonConfig.fetchEndpoint;

/** The Postgres of DATABASE_URL, by Neon's HTTP. */
export const neonDatabase: DatabaseKind = {
  isIn: ({ databaseUrl }) => databaseUrl !== undefined,
  open: createNeonTransport,
};

export function createNeonTransport(settings: Pick<Settings, "databaseUrl" | "neonEndpoint">): Transport {
  const { databaseUrl = "", neonEndpoint } = settings;
  // The driver has one endpoint for the whole isolate and reads it at each query.
  neonConfig.fetchEndpoint = neonEndpoint ?? driverEndpoint;
  const query = neon(databaseUrl);
  return {
    async send(statements, { timeoutMs, isReadCommitted }) {
      const fetchOptions = { signal: AbortSignal.timeout(timeoutMs) };
      const [first, ...others] = statements;
      // The other way, a batch, can set its isolation level, but needs a transaction block around the statement.
      if (first && others.length === 0 && !isReadCommitted)
        return (await query.query(first.text, first.values, { fetchOptions })) as Row[];
      const batch = statements.map(({ text, values }) => query.query(text, values));
      const results = await query.transaction(batch, { fetchOptions, isolationLevel: "ReadCommitted" });
      return results.at(-1) as Row[];
    },
    sqlstateOf: (error) => (error instanceof NeonDbError ? (error.code ?? "") : ""),
    explain(error, cause) {
      if (!isNeonMissing(error, { databaseUrl, neonEndpoint })) return undefined;
      // The host is only for the log.
      const { host } = new URL(neonEndpoint ?? databaseUrl);
      const hostError = new Error(`${host} does not speak Neon's HTTP protocol`, { cause });
      return new SluiceError("database_not_neon", notNeonText, { cause: hostError });
    },
    mayCache: false,
    close: () => Promise.resolve(),
  };
}

const notNeonText =
  "the host of DATABASE_URL does not speak Neon's HTTP protocol: use a Neon database, connect to any other Postgres " +
  "through Hyperdrive, or set SLUICE_NEON_ENDPOINT to a proxy that speaks it";
