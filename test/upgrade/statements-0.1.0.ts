// The statements of release 0.1.0 that later releases send in another form.

import { packSettlements } from "../../src/core/settlements.ts";
import { claim } from "../../src/core/sql/index.ts";
import { sql } from "../../src/core/sql/sql.ts";
import { many } from "../../src/core/sql/statement.ts";
import type { currentStatements } from "../support/traffic.ts";

export const statements: typeof currentStatements = {
  claim(request, settlements = []) {
    const { queue, types, limit, leaseSeconds } = request;
    const packed = settlements.length > 0 ? packSettlements(settlements) : null;
    return {
      ...claim(request, settlements),
      build: (schema) => sql`
        select ${schema}.claim(
          ${queue}::text, ${types}::text[], ${limit}::int, ${leaseSeconds}::float8, null::text,
          4194304::bigint, null::jsonb, null::jsonb, ${packed?.ids ?? null}::uuid[],
          ${packed?.keys ?? null}::uuid[], ${packed?.outcomes ?? null}::jsonb, true::boolean
        ) as claimed`,
    };
  },
  findJob: (id) => ({
    name: "find job",
    isRepeatable: true,
    build: (schema) => sql`select id from ${schema}.find_job(${id}::uuid)`,
    decode: many((row) => row.id),
  }),
  listCompleted: (limit) => ({
    name: "list jobs",
    isRepeatable: true,
    build: (schema) =>
      sql`select id from ${schema}.list_jobs(null, 'completed', null, null, null, ${limit}::int)`,
    decode: many((row) => row.id),
  }),
};
