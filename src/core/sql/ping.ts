// ping: checks that the database is reachable, writable and has the schema, and when each kind of round last ended.
import type { Heartbeats } from "../policy/health.ts";
import { sql } from "./sql.ts";
import { one, type Statement, time, timeOf, timeOrNull } from "./statement.ts";

export interface Ping extends Heartbeats {
  /** True for a standby, or if the default forbids writes. */
  isReadOnly: boolean;
}

export function ping(): Statement<Ping> {
  return {
    name: "ping",
    isRepeatable: true,
    build: (schema) => sql`
      select ${time("at")}, ${time("running_since")}, ${time("drained_at")}, ${time("reaped_at")}, ${time("watched_at")},
             is_read_only
      from (
        select now() as at,
               coalesce((select ended_at from ${schema}.round order by id limit 1),
                        (select max(applied_at) from ${schema}.migration)) as running_since,
               (select ended_at from ${schema}.round where kind = 'drain' order by id desc limit 1) as drained_at,
               (select ended_at from ${schema}.round where kind = 'reap' order by id desc limit 1) as reaped_at,
               (select ended_at from ${schema}.round where kind = 'watch' order by id desc limit 1) as watched_at,
               current_setting('transaction_read_only') = 'on' as is_read_only -- on a standby it always is
      ) as seen`,
    decode: one((row) => ({
      at: timeOf(row.at),
      runningSince: timeOf(row.running_since),
      lastEndedAt: {
        drain: timeOrNull(row.drained_at),
        reap: timeOrNull(row.reaped_at),
        watch: timeOrNull(row.watched_at),
      },
      isReadOnly: row.is_read_only === true,
    })),
  };
}
