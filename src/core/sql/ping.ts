// ping: is the database there, with our schema in it, and when did each kind of round last end.
import { sql } from "drizzle-orm";
import type { Heartbeats } from "../policy/health.ts";
import type { Statement } from "./statement.ts";

export function ping(): Statement<Heartbeats> {
  return {
    name: "ping",
    isRepeatable: true,
    build: (schema) => sql`
      select now() as at,
             coalesce((select ended_at from ${schema}.round order by id limit 1),
                      (select max(applied_at) from ${schema}.migration)) as running_since,
             (select ended_at from ${schema}.round where kind = 'drain' order by id desc limit 1) as drained_at,
             (select ended_at from ${schema}.round where kind = 'reap' order by id desc limit 1) as reaped_at,
             (select ended_at from ${schema}.round where kind = 'watch' order by id desc limit 1) as watched_at`,
    decode: (row) => ({
      at: row.at as Date,
      runningSince: row.running_since as Date,
      lastEndedAt: {
        drain: row.drained_at as Date | null,
        reap: row.reaped_at as Date | null,
        watch: row.watched_at as Date | null,
      },
    }),
  };
}
