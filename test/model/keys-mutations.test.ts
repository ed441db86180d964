// Each rule of keys is needed: without it, a short scenario loses a job or the order. The scenarios are parts of what the gate
// of keys does, in an order that makes them certain.
import type pg from "pg";
import {
  cancel,
  claim,
  discard,
  enqueue,
  extend,
  prune,
  reapExpired,
  reapLeases,
} from "../../src/core/sql/index.ts";
import { type KeyedJobs, numbered, ofKey } from "../support/keyed-jobs.ts";
import { makeOlder } from "../support/old-jobs.ts";
import { rewriteFunction } from "../support/rewrite-function.ts";
import type { TestDatabase } from "../support/test-database.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete as done } from "../support/verbs.ts";
import { runOn } from "./gate/gate-sql.ts";
import { holdCancel, type Scenario, takeOne, takeSeqs, testMutations, whileOpen } from "./key-scenarios.ts";

const bury = { kind: "bury", message: "no use" } as const;
const pass = { policy: { onDead: "pass" } } as const;

const takeAndBury = async (jobs: KeyedJobs) => {
  await jobs.put("a1 a2");
  await jobs.take();
  await jobs.end("a1", bury);
};

/** A job that holds its key's turn expires. */
const expireAtTurn = async (jobs: KeyedJobs) => {
  await jobs.put("a1", { expiresAt: new Date(Date.now() + 60_000) });
  await jobs.put("a2");
  await jobs.take(pass);
  await jobs.end("a1", { kind: "release" });
  await jobs.verbs.query("update sluice.job set expires_at = now() where expires_at is not null");
  await jobs.verbs.query("update sluice.expiry set expires_at = now()");
};

/** A job is committed late, and another one of its key is enqueued after that. */
const commitLate = async (jobs: KeyedJobs, db: TestDatabase) => {
  await jobs.put("z1"); // the lane exists before the transaction begins
  await jobs.drain();
  const begin = (client: pg.PoolClient) => runOn(client, enqueue(jobs.requests("a1")));
  const before = await whileOpen(db, { begin, end: "commit" }, async () => {
    await jobs.put("b1 b2");
    return jobs.drain();
  });
  await jobs.put("a2");
  return `${before} ${await jobs.drain()}`;
};

/** A job of a lease is put back, and then the lease ends. */
const putBackBeforeEnd = async (jobs: KeyedJobs, db: TestDatabase) => {
  await jobs.put("a1 a2 b1");
  await jobs.take({ run: 1 });
  await jobs.end("a1", { kind: "snooze", retryInSeconds: 60 });
  await jobs.end("b1");
  await jobs.take();
  return `${(await wrongKeys(db.pool)).length} wrong`;
};

const takeBesideGrant = async (jobs: KeyedJobs) => {
  await jobs.put("a1");
  await jobs.take();
  await jobs.put("a2 b1");
  return jobs.take();
};

/** Three keys with four jobs each, of which two have run. Their turns go from one job to the next. */
const passTurns = async (jobs: KeyedJobs) => {
  await jobs.put("a1 a2 a3 a4 b1 b2 b3 b4 c1 c2 c3 c4");
  await takeThree(jobs);
  await jobs.end("a1 b1 c1");
  return takeThree(jobs);
};
const takeThree = (jobs: KeyedJobs) => jobs.take({ run: 1, limit: 3 });

/** a0 is committed late, while the two jobs before the last of each key run. */
const passTurnsLate = async (jobs: KeyedJobs, db: TestDatabase) => {
  await jobs.put("z1");
  await jobs.drain(); // the lane exists before the transaction begins
  const begin = (client: pg.PoolClient) => runOn(client, enqueue(jobs.requests("a0")));
  return whileOpen(db, { begin, end: "commit" }, () => passTurns(jobs));
};

const scenarios: Scenario[] = [
  {
    title: "a turn that came back goes to a later job than the one that was committed late",
    mutations: [
      {
        name: "dispatch",
        from: "v_next := next_of_keys(v_returned.keys, v_returned.places, null,",
        to: "perform next_of_keys(v_returned.keys, v_returned.places, null,",
      },
    ],
    right: "a0",
    run: async (jobs, db) => {
      await passTurnsLate(jobs, db);
      await jobs.end("a2 b2 c2");
      return ofKey("a", await takeThree(jobs));
    },
  },
  {
    title: "a turn that came back goes to a later job than the one that was seen late before",
    mutations: [{ name: "rest_turns", from: "and late is null", to: "" }],
    right: "a0",
    run: async (jobs, db) => {
      await passTurnsLate(jobs, db);
      await takeThree(jobs); // it finds a0
      await jobs.end("a2 b2 c2");
      return ofKey("a", await takeThree(jobs));
    },
  },
  {
    title: "a turn that came back passes over a locked job",
    mutations: [
      {
        name: "next_of_keys",
        from: "order by ready.seq limit 1",
        to: "order by ready.seq limit 1 for update skip locked",
      },
    ],
    right: "a3 a4",
    run: async (jobs, db) => {
      await passTurns(jobs);
      await jobs.end("a2 b2 c2");
      const before = await holdCancel(jobs, db, "a3", () => jobs.drain({ run: 1, limit: 3 }));
      return ofKey("a", `${before} ${await jobs.drain()}`);
    },
  },
  {
    title: "late rows are not looked for",
    mutations: [{ name: "dispatch", from: "exit when v_late.keys is null;", to: "exit;" }],
    right: "b1 b2 a1 a2",
    run: commitLate,
  },
  {
    title: "a key keeps a turn for a later job than the one that was committed late",
    mutations: [
      {
        name: "dispatch",
        from: "v_look := take_back(v_look, v_late.keys, v_late.seqs);",
        to: "",
      },
    ],
    right: "b1 b2 a1 a2",
    run: commitLate,
  },
  {
    title: "open writers are forgotten when many seqs lie ahead",
    mutations: [
      {
        name: "read_waiting",
        from: "p_cursor.writers = '{}' and p_cursor.seq - p_highest >= c_far",
        to: "p_cursor.seq - p_highest >= c_far",
      },
    ],
    right: "b1 c1 d1 e1 f1 a1 g1 h1 i1 j1 a2",
    run: async (jobs, db) => {
      await jobs.put("z1");
      await jobs.drain();
      const begin = (client: pg.PoolClient) => runOn(client, enqueue(jobs.requests("a1")));
      const before = await whileOpen(db, { begin, end: "commit" }, async () => {
        await jobs.put("b1 c1 d1 e1 f1 g1 h1 i1 j1"); // a dispatch gives out four turns
        await takeSeqs(jobs);
        const names: string[] = [];
        while (names.length < 5) names.push(await takeOne(jobs));
        return names.join(" ");
      });
      await jobs.put("a2");
      return `${before} ${await jobs.drain()}`;
    },
  },
  {
    title: "a claim does not read on where the seqs of the last one end",
    mutations: [
      {
        name: "read_waiting",
        from: "exit when v_look.is_all and not v_is_far;",
        to: "exit when v_look.is_all;",
      },
    ],
    right: "a1 b1 c1 d1 e1 f1",
    run: async (jobs) => {
      await jobs.put("a1 b1 c1 d1 e1"); // a dispatch gives out four turns
      await takeSeqs(jobs);
      const first = await takeOne(jobs);
      await jobs.put("f1");
      return `${first} ${await jobs.take({ limit: 10 })}`;
    },
  },
  {
    title: "a key whose turn is out gets a second one when other jobs are locked",
    mutations: [
      {
        name: "return_stuck",
        from: "where tid = any(p_granted.tids) and tid <> all(p_locked)",
        to: "where tid <> all(p_locked)",
      },
    ],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put("a1");
      await jobs.take();
      await jobs.put("a2 c1");
      await jobs.put("d1", { priority: 7 }); // the lane of a2 and c1 is read after this one
      await takeOne(jobs);
      return holdCancel(jobs, db, "c1", async () => {
        await takeOne(jobs);
        return `${(await wrongKeys(db.pool)).length} wrong`;
      });
    },
  },
  {
    title: "the rest of a run stays in the lease when a job of it fails",
    mutations: [
      {
        name: "settle_jobs",
        from: "v_request := with_rest_of_runs(p_ids, p_keys, p_outcomes);",
        to: "select p_ids as ids, p_keys as keys, p_outcomes as outcomes into v_request;",
      },
    ],
    right: "a1 a2 a3",
    run: async (jobs) => {
      await jobs.put("a1 a2 a3");
      await jobs.take({ run: 3 });
      await jobs.end("a1", { kind: "release" });
      return jobs.drain();
    },
  },
  {
    title: "a locked head that was not read yet is passed over",
    mutations: [
      {
        name: "unread_rows",
        from: "order by ready.seq limit p_rows",
        to: "order by ready.seq limit p_rows for update skip locked",
      },
    ],
    right: "a1 a2",
    run: async (jobs, db) => {
      await jobs.put("a1 a2");
      const before = await holdCancel(jobs, db, "a1", () => jobs.drain());
      return `${before} ${await jobs.drain()}`.trim();
    },
  },
  {
    title: "a locked head of a key that was never claimed is passed over",
    mutations: [
      {
        name: "look_at_new",
        from: "order by seq limit p_rows",
        to: "order by seq limit p_rows for update skip locked",
      },
    ],
    right: "z1 w1 x1 y1 b1 a1 a2",
    run: async (jobs, db) => {
      await jobs.put("z1 w1 x1 y1 a1 b1"); // w1, x1 and y1 get their turns ahead
      await takeSeqs(jobs); // so the next claims do not ask for open writers, of which the cancel is one
      const first = await takeOne(jobs);
      const before = await holdCancel(jobs, db, "a1", () => jobs.drain());
      await jobs.put("a2");
      return `${first} ${before} ${await jobs.drain()}`;
    },
  },
  {
    title: "two jobs of a key that was never claimed get a turn each",
    mutations: [{ name: "look_at_new", from: "count(distinct key) = count(*) and", to: "" }],
    right: "a1",
    run: async (jobs) => {
      await jobs.put("a1 a2");
      return jobs.take({ run: 1 });
    },
  },
  {
    title: "a key counts as one that was never claimed although a retry holds its turn",
    mutations: [
      {
        name: "are_unused",
        from: "where turns > 0 or waits or listed or",
        to: "where false and",
      },
    ],
    right: "b1",
    run: async (jobs) => {
      await jobs.put("a1");
      await jobs.take();
      await jobs.end("a1", { kind: "snooze", retryInSeconds: 60 });
      await jobs.take();
      await jobs.put("a2 b1");
      return jobs.take();
    },
  },
  {
    title: "a changed policy forgets up to which place turns are out",
    mutations: [
      {
        name: "dispatch",
        from: "p_before.highest; --",
        to: "coalesce((select max(seq) from unnest(p_before.seqs) as seq), 0); --",
      },
    ],
    right: "a2 a1",
    run: async (jobs, db) => {
      const begin = (client: pg.PoolClient) => runOn(client, enqueue(jobs.requests("a1")));
      const other = (concurrency: number) =>
        jobs.take({ types: ["other"], policy: { onDead: "block", concurrency } });
      await jobs.put("z1");
      await jobs.drain();
      await whileOpen(db, { begin, end: "commit" }, async () => {
        await jobs.put("a2");
        await jobs.take();
        await jobs.end("a2", { kind: "snooze", retryInSeconds: 60 });
        return other(2);
      });
      await other(3);
      await jobs.makeDue();
      return jobs.drain();
    },
  },
  {
    title: "a locked head that was read while another job of its key ran is passed over",
    mutations: [
      {
        name: "look_up_next",
        from: "order by ready.seq limit 1) as first",
        to: "order by ready.seq limit 1 for update skip locked) as first",
      },
    ],
    right: "a2 a3",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 a3");
      await jobs.take();
      await jobs.take();
      const before = await holdCancel(jobs, db, "a2", async () => {
        await jobs.end("a1");
        return jobs.drain();
      });
      return `${before} ${await jobs.drain()}`.trim();
    },
  },
  {
    title: "a locked job in the middle of a run is passed over",
    mutations: [
      {
        name: "locked_followers",
        from: "bool_and(tid = any(p_locked)) over (partition by key order by seq) as fits",
        to: "tid = any(p_locked) as fits",
      },
    ],
    right: "a1 a2 a3",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 a3");
      const before = await holdCancel(jobs, db, "a2", () => jobs.drain({ run: 3 }));
      return `${before} ${await jobs.drain({ run: 3 })}`.trim();
    },
  },
  {
    title: "a turn that came back in a locked row is passed over",
    mutations: [
      {
        name: "rows_of_turns",
        from: "coalesce(p_cursor_seqs[lane], 0) as low",
        to: "(select max(key_cursor.seq) from key_cursor where queue = p_cursor.queue) as low",
      },
    ],
    right: "b1 b2 a2",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 b1 b2");
      const first = await jobs.take();
      await jobs.end("a1");
      const begin = (client: pg.PoolClient) =>
        client.query("select from sluice.ready where returned is not null for update");
      const before = await whileOpen(db, { begin, end: "rollback" }, async () => {
        await jobs.end("b1");
        return jobs.drain();
      });
      return `${first.replace("a1 ", "")} ${before} ${await jobs.drain()}`;
    },
  },
  {
    title: "a key whose turn is part of a grant gets a second one",
    mutations: [
      { name: "look_at_waiting", from: "key in (select unnest(v_held)) as is_held", to: "false as is_held" },
    ],
    right: "b1",
    run: takeBesideGrant,
  },
  {
    title: "a key counts as one that was never claimed although its turn is part of a grant",
    mutations: [
      { name: "look_at_new", from: "and bool_or(key in (select unnest(v_held))) is not true", to: "" },
    ],
    right: "b1",
    run: takeBesideGrant,
  },
  {
    title: "a key gets a second turn when one claim looks several times",
    mutations: [{ name: "read_waiting", from: "p_batch.held := p_batch.held || v_look.together;", to: "" }],
    right: numbered("a", 1, 200),
    run: async (jobs, db) => {
      // so that it looks again on a slow machine too
      await rewriteFunction(db.pool, {
        ...{ name: "read_waiting", from: "c_most_ms  constant int := 200;" },
        to: "c_most_ms  constant int := 60000;",
      });
      await jobs.put(`${numbered("a", 1, 200)} b1`);
      return ofKey("a", await jobs.drain({ limit: 30 }));
    },
  },
  {
    title: "a grant does not know which jobs wait behind its turns",
    mutations: [{ name: "note_waited", from: "perform note_behind(", to: "-- " }],
    right: "a2",
    run: async (jobs) => {
      await jobs.put("a1");
      await jobs.take();
      await jobs.put("a2 b1");
      await jobs.take();
      await jobs.end("a1");
      return jobs.drain();
    },
  },
  {
    title: "a turn that comes back alone stays in its grant",
    mutations: [
      {
        name: "take_returned",
        from: "v_more := leave_grants(p_cursor.grants, keys, places);",
        to: "select '{}'::bigint[] as left_keys, null::bigint[] as waited, null::bigint[] as seqs into v_more;",
      },
    ],
    right: "a2",
    run: async (jobs) => {
      await jobs.put("a1 a2 b1");
      await jobs.take({ run: 1 });
      await jobs.end("a1");
      return jobs.take();
    },
  },
  {
    title: "the end of a grant frees a key whose job runs again",
    mutations: [{ name: "end_grants", from: "if v_grant.keys && v_apart then", to: "if false then" }],
    right: "0 wrong",
    run: putBackBeforeEnd,
  },
  {
    title:
      "a job that was committed late is forgotten when the job before it keeps the turn of a grant that ends",
    mutations: [
      {
        name: "end_grants",
        from: "where key = any(v_grant.keys);",
        to: "where key = any(v_grant.keys) and key <> all(v_apart);",
      },
    ],
    right: "a2 a1 a3",
    run: async (jobs, db) => {
      await jobs.put("z1");
      await jobs.drain();
      const begin = (client: pg.PoolClient) => runOn(client, enqueue(jobs.requests("a1")));
      await whileOpen(db, { begin, end: "commit" }, async () => {
        await jobs.put("a2");
        return jobs.take();
      });
      await jobs.put("b1 a3");
      await jobs.take(); // finds a1 behind a2
      await jobs.end("a2", { kind: "release" });
      return jobs.drain();
    },
  },
  {
    title: "a key that is apart from one grant counts as apart from another",
    mutations: [
      {
        name: "end_grants",
        from: "where grant_id = v_grant.id) end",
        to: ") end",
      },
    ],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 b1");
      await jobs.take({ run: 1 });
      await jobs.end("a1");
      await jobs.take({ run: 1 });
      await jobs.end("a2");
      await jobs.end("b1");
      await jobs.take();
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "a lease does not say at its end which keys have left it",
    mutations: [
      {
        name: "remove_from_leases",
        from: "case when grant_id is not null",
        to: "case when false",
      },
    ],
    right: "0 wrong",
    run: putBackBeforeEnd,
  },
  {
    title: "a lease that ran out frees the keys of jobs that run again",
    mutations: [{ name: "reap_leases", from: "apart || keys)", to: "null)" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put("a1 a2");
      await jobs.take({ run: 1 });
      await jobs.verbs.query("update sluice.lease set deadline = now() - interval '1 s'");
      await db.run(reapLeases({ limit: 10 }));
      await jobs.put("c1");
      await jobs.take();
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "both parts of a lease that was split have its grant",
    mutations: [{ name: "extend", from: "case when not is_wanted then grant_id end", to: "grant_id" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 b1");
      await jobs.take({ run: 1 });
      await db.run(extend([jobs.held("a1")], { seconds: 600 }));
      await jobs.end("a1");
      await jobs.take({ run: 1 });
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "a key counts as held by a grant although its job was not taken",
    mutations: [{ name: "store_grants", from: "if v_left <> '{}' then", to: "if false then" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put("a1 b1 b2");
      await jobs.verbs.query("update sluice.job set expires_at = now() where payload->>'name' = 'b1'");
      await jobs.take({ run: 1 });
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "open grants are forgotten when the cursors are reset",
    mutations: [
      {
        name: "reset_cursors",
        from: "update key_cursor\n  set seq = 0,",
        to: "update key_cursor set grants = '{}', seq = 0,",
      },
    ],
    right: "b1",
    run: async (jobs) => {
      await jobs.put("a1");
      await jobs.take();
      await jobs.verbs.query("select sluice.reset_cursors()");
      await jobs.put("a2 b1");
      return jobs.take();
    },
  },
  {
    title: "turns that came back together are lost if the claim has no room for all",
    mutations: [
      {
        name: "take_returned",
        from: "perform return_turns(p_cursor.queue, keys[v_wanted + 1 :], places[v_wanted + 1 :]);",
        to: "",
      },
    ],
    right: "a3 b3 c3",
    run: async (jobs) => {
      for (const n of [1, 2, 3]) await jobs.put(`a${n} b${n} c${n}`);
      for (const limit of [9, 3])
        await jobs.verbs.settle((await jobs.verbs.claimBatch({ limit, run: 1 })).jobs, done);
      return `${await takeOne(jobs)} ${await jobs.drain()}`;
    },
  },
  {
    title: "the turn of a run comes back twice if the claim has no room for all turns",
    mutations: [{ name: "return_turns_of_leases", from: "group by key", to: "group by key, job.place" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      // so that turns are part of no grant
      await rewriteFunction(db.pool, {
        ...{ name: "open_grants", from: "c_grants constant int := 100;" },
        to: "c_grants constant int := 0;",
      });
      for (const key of ["a", "b", "c", "d"]) await jobs.put(numbered(key, 1, 8));
      for (const limit of [32, 6])
        await jobs.verbs.settle((await jobs.verbs.claimBatch({ limit, run: 3 })).jobs, done);
      for (let claims = 0; claims < 6; claims++) await jobs.verbs.claimBatch({ limit: 1 });
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "a grant that ends while older turns wait is never heard of again",
    mutations: [
      {
        name: "take_returned",
        from: "perform return_grant(p_cursor.queue, grant_id, null) from unnest(v_ended) as grant_id;",
        to: "",
      },
    ],
    right: "b2 a2",
    run: async (jobs, db) => {
      await jobs.put("a1 a2");
      await jobs.take({ run: 1 });
      await jobs.put("b1 b2");
      await jobs.take({ run: 1 });
      await jobs.end("b1");
      const request = { queue: "default", types: ["echo"], limit: 1, leaseSeconds: 60 };
      const next = await db.run(claim(request, [{ job: jobs.held("a1"), outcome: done }]));
      await jobs.verbs.settle(next.jobs, done);
      return `${next.jobs.map(({ payload }) => payload.name).join(" ")} ${await jobs.drain()}`;
    },
  },
  {
    title: "jobs of a lower priority are left where turns stand in lanes",
    mutations: [
      {
        name: "take_given_out",
        from: "level := next_level(batch.queue, p_types, level.priority,",
        to: "level := next_level(batch.queue, p_types, 0::smallint,",
      },
    ],
    right: "a1 plain",
    run: async (jobs) => {
      await jobs.put("a1");
      await jobs.take();
      await jobs.end("a1", { kind: "release" });
      await jobs.verbs.enqueueOne({ payload: { name: "plain" }, priority: 1 });
      return jobs.take();
    },
  },
  {
    title: "a changed policy is forgotten by a claim that takes turns from lanes",
    mutations: [{ name: "take_given_out", from: "and not p_is_wider", to: "" }],
    right: "f1 f2",
    run: async (jobs) => {
      const shared = { type: "other", partitionKey: undefined, fairKey: "f" };
      const takeShared = (concurrency: number) =>
        jobs.take({ types: ["other"], policy: { onDead: "block", concurrency } });
      await jobs.put("f1 f2", shared);
      await jobs.put("a1");
      await jobs.take();
      await jobs.end("a1", { kind: "release" });
      const first = await takeShared(1);
      await jobs.verbs.claimBatch({ limit: 1, policy: { onDead: "block", concurrency: 2 } });
      return `${first} ${await takeShared(2)}`;
    },
  },
  {
    title: "the reaper forgets the turn of a job that has expired",
    mutations: [{ name: "reap_expired", from: "perform return_held_turns(v_turns);", to: "" }],
    right: "a2",
    run: async (jobs, db) => {
      await expireAtTurn(jobs);
      await db.run(reapExpired({ limit: 10 }));
      return jobs.drain(pass);
    },
  },
  {
    title: "a claim forgets the turn of a job that has expired",
    mutations: [{ name: "bury_expired_turns", from: "perform return_held_turns(v_turns);", to: "null;" }],
    right: "a2",
    run: async (jobs) => {
      await expireAtTurn(jobs);
      return jobs.drain(pass);
    },
  },
  {
    title: "a discard forgets the turn",
    mutations: [
      {
        name: "discard_dead",
        from: "perform return_held_turns(v_turns);",
        to: "null;",
      },
    ],
    right: "a2",
    run: async (jobs, db) => {
      await takeAndBury(jobs);
      await db.run(discard("ann", { id: await jobs.idOf("a1") }));
      return jobs.drain();
    },
  },
  {
    title: "retention forgets the turn",
    mutations: [{ name: "prune", from: "perform return_held_turns(v_turns);", to: "" }],
    right: "a2",
    run: async (jobs, db) => {
      await takeAndBury(jobs);
      await makeOlder(jobs.verbs, await jobs.idOf("a1"), 31);
      await db.run(prune({ limit: 10 }));
      return jobs.drain();
    },
  },
  {
    title: "a cancel forgets the turn",
    mutations: [
      {
        name: "cancel",
        from: "perform return_held_turns(array[row(v_pending.lane, v_pending.key, v_pending.place)::held_turn]);",
        to: "null;",
      },
    ],
    right: "a2",
    run: async (jobs, db) => {
      await jobs.put("a1 a2");
      await jobs.take();
      await jobs.end("a1", { kind: "release" });
      await db.run(cancel(await jobs.idOf("a1")));
      return jobs.drain();
    },
  },
  {
    title: "a changed policy forgets the turns of dead jobs",
    mutations: [{ name: "free_blocked_keys", from: "perform return_held_turns(v_turns);", to: "" }],
    right: "a2",
    run: async (jobs) => {
      await takeAndBury(jobs);
      return jobs.drain(pass);
    },
  },
  {
    title: "a lease that ran out gives the turn to the next job",
    mutations: [
      { name: "reap_leases", from: "then 'retry' else 'withdraw' end", to: "then 'retry' else 'retry' end" },
    ],
    right: "a1 a2 a3",
    run: async (jobs, db) => {
      await jobs.put("a1 a2 a3", { maxAttempts: 1 });
      await jobs.take({ ...pass, run: 2, leaseSeconds: -1 });
      await db.run(reapLeases({ limit: 10 }));
      return `a1 ${await jobs.drain(pass)}`;
    },
  },
];

testMutations(scenarios);
