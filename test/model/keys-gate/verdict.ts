// Compares what happened in the keys' gate with what a client could know: the order of enqueues whose commit was acknowledged,
// who held a key, and where every job ended.
import type pg from "pg";
import type { End, History, KnownJob, Start } from "./history.ts";
import type { KeysGate } from "./keys-gate.ts";

export interface Verdict {
  /** Pairs of jobs of one partition key whose order a client knew. */
  pairs: number;
  outOfOrder: string[];
  /** Claims of a partition key while an earlier lease of it was still good. */
  heldTwice: string[];
  /** Jobs that started behind a dead one that blocks. */
  passedDead: string[];
  /** Moments at which more jobs of one fair key ran than its cap. */
  overCap: string[];
  /** Jobs that were committed and have not ended. */
  lost: string[];
  /** Jobs that ended twice, or were completed twice, or whose completion is not in the table. */
  endedTwice: string[];
  /** Jobs that exist although their transaction was rolled back. */
  phantom: number;
}

export const nothingWrong = {
  ...{ outOfOrder: [], heldTwice: [], passedDead: [], overCap: [], lost: [], endedTwice: [], phantom: 0 },
  ...{ wrong: [], unreachable: 0, staleApplied: 0, restApplied: 0 },
};

export async function judge(gate: KeysGate): Promise<Verdict> {
  const { history } = gate;
  const keyed = [...history.committed.values()].filter((job) => job.key !== null);
  const keys = [...Map.groupBy(keyed, (job) => `${job.queue} ${job.key}`).values()];
  const isOrdered = ([job]: KnownJob[]) => gate.queues[job?.queue ?? ""]?.field === "partitionKey";
  const orders = keys.filter(isOrdered).map((jobs) => judgeOrder(history, jobs));
  const capped = keys.filter(([job]) => gate.queues[job?.queue ?? ""]?.cap !== null);
  return {
    pairs: orders.reduce((sum, { pairs }) => sum + pairs, 0),
    outOfOrder: few(orders.flatMap(({ outOfOrder }) => outOfOrder)),
    passedDead: few(orders.flatMap(({ passedDead }) => passedDead)),
    heldTwice: few(keys.filter(isOrdered).flatMap((jobs) => findHeldTwice(history, jobs))),
    overCap: few(capped.flatMap((jobs) => findOverCap(gate, jobs))),
    ...(await judgeEnds(gate)),
  };
}

const few = (list: string[]) => list.slice(0, 5);

/** The later one was enqueued after the earlier one was committed, or later in the same transaction. */
function isKnown(earlier: KnownJob, later: KnownJob): boolean {
  return earlier.transaction === later.transaction
    ? earlier.index < later.index
    : earlier.committedAt < later.begunAt;
}

function judgeOrder(history: History, jobs: readonly KnownJob[]) {
  const regular = jobs
    .filter((job) => !job.isDelayed && !history.touched.has(job.id))
    .flatMap((job) => {
      const first = firstStart(history, job.id);
      return first ? [{ ...job, first }] : [];
    });
  const found = { pairs: 0, outOfOrder: [] as string[], passedDead: [] as string[] };
  for (const x of jobs.filter((job) => !job.isDelayed)) {
    const isRegular = !history.touched.has(x.id);
    const last = (history.starts.get(x.id) ?? []).toSorted(byStart).at(-1);
    const completed = history.ends.get(x.id)?.find((end) => end.outcome === "complete");
    for (const y of regular.filter((job) => isKnown(x, job))) {
      const { first } = y;
      const names = () => `${x.queue} ${x.key}: ${x.id} before ${y.id}`;
      if (x.queue === "block" && isPassed(history, x, first)) found.passedDead.push(names());
      if (!isRegular) continue;
      found.pairs++;
      if (!last || byStart(last, first) >= 0) found.outOfOrder.push(names());
      else if (completed && completed.leaseKey !== first.leaseKey && completed.sentAt > first.answeredAt)
        found.outOfOrder.push(`${names()}, not ended`);
    }
  }
  return found;
}

/** When a job was first run for certain: it was the first of a run, or its worker settled it. */
function firstStart(history: History, id: string): Start | undefined {
  const isRun = ({ isFirst, leaseKey }: Start) =>
    isFirst || history.ends.get(id)?.some((end) => end.leaseKey === leaseKey);
  return history.starts.get(id)?.filter(isRun).toSorted(byStart)[0];
}

function byStart(a: Start, b: Start): number {
  return a.generation < b.generation ? -1 : a.generation > b.generation ? 1 : a.place - b.place;
}

/** A worker buried it, and another job of the key started before anybody asked to replay or discard it. */
function isPassed(history: History, dead: KnownJob, start: Start): boolean {
  const [first] = history.ends.get(dead.id)?.filter(({ status }) => status === "dead") ?? [];
  return (
    first !== undefined &&
    first.sentAt < start.answeredAt &&
    start.answeredAt < (history.touched.get(dead.id) ?? Infinity)
  );
}

/** A settle that is applied proves that the lease was good until it was sent. No other lease may have the key before. */
function findHeldTwice(history: History, jobs: readonly KnownJob[]): string[] {
  const leases = new Map<string, Start & { goodUntil: number }>();
  for (const { id } of jobs) {
    for (const start of history.starts.get(id) ?? []) {
      const lease = leases.get(start.leaseKey) ?? { ...start, goodUntil: 0 };
      const ends = history.ends.get(id)?.filter((end) => end.leaseKey === start.leaseKey) ?? [];
      lease.goodUntil = Math.max(lease.goodUntil, ...ends.map((end) => end.sentAt));
      leases.set(start.leaseKey, lease);
    }
  }
  const inOrder = [...leases.values()].toSorted(byStart);
  const [{ queue, key } = { queue: "", key: "" }] = jobs;
  let goodUntil = 0;
  return inOrder.flatMap((lease) => {
    const isHeld = goodUntil > lease.answeredAt;
    goodUntil = Math.max(goodUntil, lease.goodUntil);
    return isHeld ? [`${queue} ${key}: lease ${lease.leaseKey}`] : [];
  });
}

/** Counts only jobs that were held for certain: from the answer of the claim to the settle that was applied. */
function findOverCap({ history, queues }: KeysGate, jobs: readonly KnownJob[]): string[] {
  const [{ queue, key } = { queue: "", key: "" }] = jobs;
  const cap = queues[queue]?.cap ?? Infinity;
  const changes = jobs.flatMap(({ id }) =>
    (history.starts.get(id) ?? []).flatMap((start) => {
      const end = history.ends.get(id)?.find(({ leaseKey }) => leaseKey === start.leaseKey);
      return end
        ? [
            { at: start.answeredAt, by: 1 },
            { at: end.sentAt, by: -1 },
          ]
        : [];
    }),
  );
  let running = 0;
  return changes
    .toSorted((a, b) => a.at - b.at || a.by - b.by)
    .flatMap(({ at, by }) => {
      running += by;
      return running > cap ? [`${queue} ${key}: ${running} at ${at}`] : [];
    });
}

/** Where these jobs are, and what the dispatcher knows of their keys. */
async function describeLost(pool: pg.Pool, ids: readonly string[]): Promise<string[]> {
  const { rows } = await pool.query(
    `select json_build_object('id', job.id, 'lane', lane, 'key', coalesce(partition_key, fair_key),
       'ready', (select to_json(ready) from sluice.ready where ready.id = job.id),
       'scheduled', (select to_json(scheduled) from sluice.scheduled where scheduled.id = job.id),
       'state', (select to_json(key_state) from sluice.key_state
                 where key = sluice.key_of_job(queue, partition_key, fair_key) order by version desc limit 1),
       'cursor', (select to_json(key_cursor) from sluice.key_cursor
                  where key_cursor.queue = lane.queue order by version desc limit 1))::text as lost
     from sluice.job join sluice.lane using (lane) where job.id = any($1)
     limit 5`,
    [ids],
  );
  return rows.map((row) => String(row.lost));
}

async function judgeEnds({ pool, history }: KeysGate) {
  const { rows } = await pool.query(`
    select (select coalesce(array_agg(id), '{}') from sluice.job) as jobs,
           (select coalesce(array_agg(id), '{}') from sluice.done cross join unnest(ids) as id) as done,
           (select coalesce(array_agg(id), '{}') from sluice.closed) as closed`);
  const { jobs, done, closed } = rows[0] as { jobs: string[]; done: string[]; closed: string[] };
  const ended = new Set([...done, ...closed]);
  const isDone = new Set(done);
  const completions = (ends: readonly End[] = []) => ends.filter((end) => end.status === "completed").length;
  const lost = [...history.committed.keys()].filter((id) => !ended.has(id));
  return {
    lost: await describeLost(pool, lost),
    endedTwice: few([
      ...(done.length + closed.length === ended.size ? [] : ["in two tables"]),
      ...jobs.filter((id) => completions(history.ends.get(id)) !== (isDone.has(id) ? 1 : 0)),
    ]),
    phantom: jobs.filter((id) => history.rolledBack.has(id)).length,
  };
}
