// Fills the tables in seconds as a queue that has been in use for a while: waiting, scheduled, completed and dead jobs in
// several queues, types and priorities, with books that balance.
import type pg from "pg";

export interface QueueSize {
  waiting: number;
  scheduled: number;
  finished: number;
  dead: number;
}

export const ciSize: QueueSize = { waiting: 100_000, scheduled: 20_000, finished: 50_000, dead: 2_000 };
export const longSize: QueueSize = {
  waiting: 1_000_000,
  scheduled: 200_000,
  finished: 500_000,
  dead: 20_000,
};

/** Six types in two queues with three priorities each. The type `rare` has 50 waiting jobs, which are the oldest. */
export const commonTypes = ["mail", "image", "invoice", "export", "sync", "digest"] as const;
export const rareType = "rare";
/** The tag of every hundredth waiting job. */
export const commonTag = "customer-7";

const rareJobs = 50;
const batchSize = 100;
/** Finished jobs are at least this old, and waiting jobs at most. Each 65-second bucket has some thousands. */
const waitingMinutes = 10;
const finishedMinutes = 60;

export async function fillQueue(client: pg.ClientBase, size: QueueSize): Promise<void> {
  await client.query("set search_path to sluice");
  await client.query("begin");
  await makeLanes(client);
  await fillWaiting(client, size.waiting);
  await fillScheduled(client, size.scheduled);
  await fillFinished(client, size.finished);
  await fillDead(client, size.dead);
  await client.query("drop table filled_lane, filled_job");
  await client.query("commit");
}

/** `filled_lane` numbers the lanes, so that a job's number gives its lane. All jobs of a batch share a lane. */
async function makeLanes(client: pg.ClientBase): Promise<void> {
  await client.query(
    `create temporary table filled_lane as
     select row_number() over (order by priority, type, queue) - 1 as number,
            lane_of(queue, type, priority::smallint) as lane
     from unnest($1::text[]) as type, unnest(array['default', 'heavy']) as queue, unnest(array[1, 5, 9]) as priority`,
    [commonTypes],
  );
  await client.query("create temporary table filled_job (n int, id uuid, lane int)");
}

/** Makes `count` new jobs, evenly between two ages, with their rows in `job`, in the books and in `filled_job`. */
async function fillJobs(
  client: pg.ClientBase,
  options: { count: number; fromMinutesAgo: number; toMinutesAgo: number; tag?: string; delayed?: boolean },
): Promise<void> {
  const { count, fromMinutesAgo, toMinutesAgo, tag = null, delayed = false } = options;
  await client.query("truncate filled_job");
  await client.query(
    `insert into filled_job
     select n, (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
                || right(translate(gen_random_uuid()::text, '-', ''), 15))::uuid, lane
     from (
       select n, ((extract(epoch from now()) - 60 * ($2::float8 - ($2 - $3::float8) * n / $1::int)) * 1000)::bigint as ms
       from generate_series(0, $1::int - 1) as n
     ) as numbered
     join filled_lane on number = n / ${batchSize} % (select count(*) from filled_lane)
     order by n`,
    [count, fromMinutesAgo, toMinutesAgo],
  );
  await client.query(
    `insert into job (id, lane, max_attempts, scheduled_at, expires_at, tags, payload)
     select id, lane, 5, run_at, run_at + interval '30 days',
            case when n % 100 = 0 then array[$1::text] end,
            jsonb_build_object('customer', n, 'address', 'someone@example.com',
                               'subject', 'a subject of a common length', 'template', 'welcome')
     from (select *, case when $2 then ${runAt} end as run_at from filled_job) as new
     order by n`,
    [tag, delayed],
  );
  await client.query(
    "insert into ledger (lane, enqueued) select lane, count(*) from filled_job group by lane",
  );
}

const runAt = "now() + interval '1 hour' + n * interval '100 ms'";

async function fillWaiting(client: pg.ClientBase, count: number): Promise<void> {
  await client.query("select enqueue_many($1, array_fill('{}'::jsonb, array[$2::int]))", [
    rareType,
    rareJobs,
  ]);
  await fillJobs(client, { count, fromMinutesAgo: waitingMinutes, toMinutesAgo: 0, tag: commonTag });
  await client.query(
    "insert into ready (seq, id, lane) select nextval('ready_seq'), id, lane from filled_job order by n",
  );
  await client.query("insert into job_tag (tag, id) select $1, id from filled_job where n % 100 = 0", [
    commonTag,
  ]);
  await client.query(
    "insert into ledger (lane, pending) select lane, count(*) from filled_job group by lane",
  );
}

async function fillScheduled(client: pg.ClientBase, count: number): Promise<void> {
  await fillJobs(client, { count, fromMinutesAgo: waitingMinutes, toMinutesAgo: 0, delayed: true });
  await client.query(
    `insert into scheduled (run_at, id, lane) select ${runAt}, id, lane from filled_job order by n`,
  );
  await client.query(
    `insert into expiry (expires_at, id) select ${runAt} + interval '30 days', id from filled_job order by n`,
  );
  await client.query(
    "insert into ledger (lane, pending, scheduled) select lane, count(*), count(*) from filled_job group by lane",
  );
}

async function fillFinished(client: pg.ClientBase, count: number): Promise<void> {
  await fillJobs(client, { count, fromMinutesAgo: finishedMinutes, toMinutesAgo: waitingMinutes });
  await client.query(
    `insert into done (hi_id, lo_id, started_at, finished_at, lane, ids)
     select ids[cardinality(ids)], ids[1], time_of_id(ids[1]), time_of_id(ids[1]) + interval '1 second', lane, ids
     from (
       select lane, array_agg(id order by id) as ids
       from filled_job
       group by n / ${batchSize}, substring(uuid_send(id) for 4), lane
     ) as packed
     order by packed.ids`,
  );
  await client.query(
    "insert into ledger (lane, completed) select lane, count(*) from filled_job group by lane",
  );
}

async function fillDead(client: pg.ClientBase, count: number): Promise<void> {
  await fillJobs(client, { count, fromMinutesAgo: finishedMinutes, toMinutesAgo: waitingMinutes });
  await client.query(
    `insert into closed (id, status, reason, closed_at, started_at, lane, attempt, abandonments)
     select id, 'dead', 'fatal', now(), time_of_id(id), lane, 1, 0 from filled_job order by n`,
  );
  await client.query(
    `insert into failed_attempt (id, attempt, started_at, failed_at, message)
     select id, 1, time_of_id(id), now(), 'no such address' from filled_job order by n`,
  );
  await client.query(
    "insert into ledger (lane, failed, dead) select lane, count(*), count(*) from filled_job group by lane",
  );
}
