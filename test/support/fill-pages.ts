// Fills a queue as the pages of the dashboard meet it: a large one, with folded books, a day of history, dead letters of fifty
// kinds of error, running jobs, flows, schedules, workers, and long lists of everything that is listed.
import type pg from "pg";
import { fillQueue, type QueueSize } from "./large-queue.ts";

/** One of each thing that has a page. */
export interface FilledPages {
  pending: string;
  /** It waits behind 1,000 others of its partition key. */
  keyed: string;
  processing: string;
  completed: string;
  dead: string;
  /** A job in the middle of `flow`. */
  member: string;
  /** 1,000 jobs in layers of 100, each with ten blockers. */
  flow: string;
  smallFlow: string;
  run: string;
  fingerprint: string;
}

export async function fillPages(client: pg.ClientBase, size: QueueSize): Promise<FilledPages> {
  await fillQueue(client, size);
  const { rows: found } = await client.query(
    "select id as pending from sluice.ready order by seq desc limit 1",
  );
  const fills = [books, history, deadLetters, runningJobs, listedFlows(size.waiting / 10), newJobs];
  for (const text of [...fills, schedules(Math.min(10_000, size.dead / 10)), lists(size.dead / 2), folds])
    await client.query(text);
  await client.query("vacuum analyze");
  const { rows } = await client.query<FilledPages>(oneOfEach);
  return { ...found[0], ...rows[0] };
}

// fillQueue's ids are up to an hour old, and its entries of the ledger are new.
const books = `
  select sluice.fold_ledger(1000000);
  update sluice.migration set applied_at = now() - interval '2 days';
  update sluice.lane_span set since = since - interval '70 minutes'
  where lane not in (select lane from sluice.lane where type = 'rare');`;

const history = `
  insert into sluice.history
  select minutes, at - n * minutes * interval '1 minute', lane, 100, 0, 99, 2, 1, 1
  from sluice.lane, unnest(array[1, 5, 30]) as minutes, generate_series(1, 49) as n,
  lateral (select date_bin(make_interval(mins => minutes), now(), '2000-01-01 00:00+00') as at) as newest
  on conflict do nothing;
  insert into sluice.recent_duration
  select date_bin('10 minutes', now(), '2000-01-01 00:00+00') - n * interval '10 minutes', lane, measure, bucket, 50
  from sluice.lane, generate_series(1, 7) as n, unnest(array['waiting', 'processing']) as measure, generate_series(0, 6) as bucket;
  insert into sluice.round (kind, queue, started_at, ended_at, claim_ms, reason)
  select (array['drain', 'nudge', 'reap', 'watch'])[1 + n % 4], 'default', at, at, 3, 'empty'
  from generate_series(5000, 1, -1) as n, lateral (select now() - n * interval '30 s' as at) as ended;`;

// A fingerprint leaves out numbers, so the kinds differ by letters.
const deadLetters = `
  update sluice.failed_attempt
  set message = 'error ' || chr(97 + kind % 10) || chr(97 + kind / 10) || ' of customer ' || kind
  from (select id, abs(hashtext(id::text)) % 50 as kind from sluice.closed) as dead
  where dead.id = failed_attempt.id;
  update sluice.closed
  set fingerprint = sluice.error_fingerprint(message), closed_at = sluice.time_of_id(closed.id) + interval '5 s'
  from sluice.failed_attempt where failed_attempt.id = closed.id;`;

/** As many as some drains run, however large the queue is. */
const runningJobs = `
  do $$ begin
    for n in 1..50 loop
      perform sluice.claim(p_queue => 'default', p_types => array['mail', 'image', 'sync'], p_limit => 100, p_lease_seconds => 3000,
                           p_worker => 'drain-' || n);
    end loop;
  end $$;`;

const listedFlows = (count: number) => `
  insert into sluice.flow (id, last_id, total, completed)
  select id, id, 1, 1 from sluice.job order by id limit ${count}`;

const newJobs = `
  select sluice.enqueue_flow((
    select jsonb_agg(jsonb_build_object('ref', 'j' || n, 'type', 'mail', 'payload', '{}'::jsonb, 'after', coalesce(
      (select jsonb_agg('j' || (n / 100 - 1) * 100 + (n + k) % 100) from generate_series(0, 9) as k where n >= 100), '[]')))
    from generate_series(0, 999) as n));
  select sluice.enqueue_flow('[{"ref": "a", "type": "mail"}, {"ref": "b", "type": "mail", "after": ["a"]}]');
  select sluice.enqueue('mail', '{}', queue => 'ordered', partition_key => 'one') from generate_series(1, 1001);`;

/** Each has run ten times. One of its jobs is dead, the others have completed. Its next five slots are planned. */
const schedules = (count: number) => `
  insert into sluice.schedule (name, source, cron, time_zone, lane, payload, max_attempts, missed, overlap, planned_until, refill_at)
  select 'schedule-' || n, 'api', '0 9 * * *', 'UTC', (select min(lane) from sluice.lane), '{}', 5, 'last', 'allow', at, at
  from generate_series(1, ${count}) as n, lateral (select now() + interval '5 days' as at) as later;
  insert into sluice.scheduled (run_at, id, lane, place)
  select at, sluice.slot_id(number, at), lane, -1
  from sluice.schedule, generate_series(1, 5) as n, lateral (select now() + n * interval '1 day' as at) as slot;
  insert into sluice.schedule_run (schedule, slot, job_id)
  select number, now() - (10 - job.n / ${count}) * interval '1 day', id
  from (
    select row_number() over () - 1 as n, id
    from ((select unnest(ids) as id from sluice.done order by hi_id limit ${count} * 9)
          union all (select id from sluice.closed limit ${count})) as old
  ) as job
  join (select row_number() over () - 1 as n, number from sluice.schedule) as schedule on schedule.n = job.n % ${count}`;

/** A worker's heartbeat counts for 30 s, so these have theirs in an hour. */
const lists = (count: number) => `
  insert into sluice.alarm_event (alarm, event, severity)
  select 'dead_letters', case n % 2 when 0 then 'firing' else 'resolved' end, 'warning' from generate_series(1, ${count}) as n;
  insert into sluice.delivery (id, target, about, notice, state, tries, ended_at)
  select gen_random_uuid(), 'ops', 'dead_letters', '{"alarm": "dead_letters", "event": "firing", "summary": "5 dead letters"}',
         'delivered', 1, now() from generate_series(1, ${count}) as n;
  insert into sluice.api_key (id, name, role, key_hash)
  select gen_random_uuid(), 'key ' || n, 'producer', sha256(n::text::bytea) from generate_series(1, ${count} / 10) as n;
  insert into sluice.audit (actor, action, target, before, after)
  select 'admin', 'pause', 'queue default', '{}', '{}' from generate_series(1, ${count}) as n;
  insert into sluice.dead_run (action, type, until, actor, matched, state, ended_at)
  select 'replay', 'mail', now(), 'admin', 100, 'done', now() from generate_series(1, ${count} / 10) as n;
  insert into sluice.dead_run_job (run_id, id)
  select (select max(id) from sluice.dead_run), id
  from (select * from (select unnest(ids) as id from sluice.done limit 150) as completed
        union all select * from (select id from sluice.closed limit 100) as dead) as replayed;
  insert into sluice.worker (worker_id, kind, queues, started_at, seen_at)
  select 'w-' || n, 'puller', array['default', 'heavy'], now(), now() + interval '1 hour' from generate_series(1, 100) as n;`;

const folds = "select sluice.fold_ledger(1000000), sluice.fold_deaths(1000000), sluice.fold_flows(1000000)";

const oneOfEach = `
  select (select id from sluice.job where partition_key = 'one' order by id desc limit 1) as keyed,
         (select ids[7] from sluice.lease order by lock_order limit 1) as processing,
         (select ids[1] from sluice.done order by hi_id limit 1) as completed,
         (select id from sluice.closed order by id limit 1) as dead,
         (select id from sluice.job where flow = big.id order by id offset 500 limit 1) as member,
         big.id as flow, small.id as "smallFlow",
         (select max(id) from sluice.dead_run) as run,
         (select max(fingerprint) from sluice.dead_group) as fingerprint
  from sluice.flow as big, sluice.flow as small
  where big.total = 1000 and small.total = 2`;
