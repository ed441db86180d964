// Fills a queue as the pages of the dashboard meet it: a large one, with folded books, a day of history, rounds, events of
// alarms, and dead letters of fifty kinds of error.
import type pg from "pg";
import { fillQueue, type QueueSize } from "./large-queue.ts";

export async function fillPages(client: pg.ClientBase, size: QueueSize): Promise<void> {
  await fillQueue(client, size);
  await client.query("select sluice.fold_ledger(1000000)");
  await client.query("update sluice.migration set applied_at = now() - interval '2 days'");
  // fillQueue's ids are up to an hour old, and its entries of the ledger are new.
  await client.query(
    `update sluice.lane_span set since = since - interval '70 minutes'
     where lane not in (select lane from sluice.lane where type = 'rare')`,
  );
  await client.query(
    `insert into sluice.history
     select minutes, at - n * minutes * interval '1 minute', lane, 100, 0, 99, 2, 1, 1
     from sluice.lane, unnest(array[1, 5, 30]) as minutes, generate_series(1, 49) as n,
     lateral (select date_bin(make_interval(mins => minutes), now(), '2000-01-01 00:00+00') as at) as newest
     on conflict do nothing`,
  );
  await client.query(
    `insert into sluice.recent_duration
     select date_bin('10 minutes', now(), '2000-01-01 00:00+00') - n * interval '10 minutes', lane, measure, bucket, 50
     from sluice.lane, generate_series(1, 7) as n, unnest(array['waiting', 'processing']) as measure, generate_series(0, 6) as bucket`,
  );
  await client.query(
    `insert into sluice.round (kind, queue, started_at, ended_at, claim_ms, reason)
     select (array['drain', 'nudge', 'reap', 'watch'])[1 + n % 4], 'default', at, at, 3, 'empty'
     from generate_series(5000, 1, -1) as n, lateral (select now() - n * interval '30 s' as at) as ended`,
  );
  await client.query(
    `insert into sluice.alarm_event (alarm, event, severity)
     select 'dead_letters', case n % 2 when 0 then 'firing' else 'resolved' end, 'warning' from generate_series(1, 2000) as n`,
  );
  await client.query(
    "update sluice.failed_attempt set message = 'error ' || abs(hashtext(id::text)) % 50 where message = 'no such address'",
  );
  await client.query("vacuum analyze");
}
