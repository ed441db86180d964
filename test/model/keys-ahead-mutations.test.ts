// Each rule of turns that are given out ahead is needed (migrations/functions/turns-ahead.sql). In all scenarios the first claim has
// the dispatcher give out the turns of the next keys.
import { ownersOf, placeOf } from "../../src/core/policy/hash-ring.ts";
import type { Claim } from "../../src/core/sql/claim.ts";
import { cancel, claim, enqueue } from "../../src/core/sql/index.ts";
import { type KeyedJobs, ofKey } from "../support/keyed-jobs.ts";
import { untilWaiting } from "../support/sessions.ts";
import { wrongKeys } from "../support/turns.ts";
import { complete as done } from "../support/verbs.ts";
import { runOn } from "./gate/gate-sql.ts";
import { holdCancel, type Scenario, takeOne, testMutations, whileOpen } from "./key-scenarios.ts";

const request = { queue: "default", types: ["echo"], limit: 1, leaseSeconds: 60 };
/** A claim that may not have jobs ahead. */
const limited = { types: [{ type: "echo", limits: { concurrency: 50 } }] };
const onRing = (id: string) => placeOf(id, ownersOf(["w1", "w2"]));

const take = async (jobs: KeyedJobs, limit: number, options: Partial<Claim> = {}) => {
  const { jobs: taken } = await jobs.verbs.claimBatch({ limit, ...options });
  return { taken, names: taken.map(({ payload }) => payload.name).join(" ") };
};

/** A job of each of 26 keys. */
const letters = (number: string) =>
  Array.from({ length: 26 }, (_, n) => String.fromCharCode(97 + n) + number).join(" ");

/** z1 is claimed, and the turn of `a` is ahead. */
const giveAhead = async (jobs: KeyedJobs, names = "z1 a1 b1") => {
  await jobs.put(names);
  return take(jobs, 1);
};

/** Two claims share a grant: each takes one of its two jobs. */
const shareGrant = async (jobs: KeyedJobs) => {
  await jobs.put("y1 z1 a1 b1");
  await take(jobs, 2);
  await take(jobs, 1);
  return take(jobs, 1);
};

const scenarios: Scenario[] = [
  {
    title: "two claims take the same jobs ahead",
    mutations: [{ name: "take_ahead", from: "limit 1 for update skip locked", to: "limit 1" }],
    right: "a1, b1, ",
    run: async (jobs, db) => {
      await giveAhead(jobs);
      let second: Promise<string> | undefined;
      const first = await whileOpen(db, { begin: async () => {}, end: "commit" }, async (client) => {
        const { jobs: taken } = await runOn(client, claim(request));
        second = takeOne(jobs);
        await Promise.race([second, untilWaiting(db.pool)]); // a claim that waits for the first one does so now
        return taken.map(({ payload }) => payload.name).join(" ");
      });
      const names = [first, await second];
      await jobs.put("a2");
      return [...names, await jobs.take()].join(", ");
    },
  },
  {
    title: "a claim takes jobs of a grant that another has taken already",
    mutations: [{ name: "take_grant", from: "where place > p_ahead.after", to: "" }],
    right: "b1",
    run: async (jobs) => {
      await jobs.put("y1 z1 a1 b1");
      await take(jobs, 2);
      await take(jobs, 1);
      await jobs.put("a2");
      return jobs.take();
    },
  },
  {
    title: "the end of a lease frees the turn of a job that another lease has",
    mutations: [{ name: "take_grant", from: "p_batch.taken[v_taken + 1].apart := v_keys;", to: "null;" }],
    right: "",
    run: async (jobs) => {
      const { taken } = await shareGrant(jobs);
      await jobs.verbs.settle(taken, done);
      await jobs.put("a2");
      return jobs.take();
    },
  },
  {
    title: "the turn of a job that was cancelled is never heard of again",
    mutations: [
      {
        name: "return_missing",
        from: "perform return_turns(",
        to: "perform count(*), array_agg(p_queue), (",
      },
    ],
    right: "b1 a2",
    run: async (jobs, db) => {
      await giveAhead(jobs);
      await db.run(cancel(await jobs.idOf("a1")));
      await jobs.put("a2");
      return jobs.drain();
    },
  },
  {
    title: "a job whose cancel was rolled back is passed over",
    mutations: [{ name: "leave_grants", from: "returned.place between 0 and held.place - 1", to: "false" }],
    right: "b1 a1 a2",
    run: async (jobs, db) => {
      await giveAhead(jobs);
      const before = await holdCancel(jobs, db, "a1", () => jobs.drain());
      await jobs.put("a2");
      return `${before} ${await jobs.drain()}`;
    },
  },
  {
    title: "a job whose cancel was rolled back is passed over where its grant ends first",
    mutations: [{ name: "end_grants", from: "select key, place - 1 from", to: "select key, place from" }],
    right: "b1 a1 a2",
    run: async (jobs, db) => {
      await giveAhead(jobs);
      const before = await holdCancel(jobs, db, "a1", () => jobs.drain(limited));
      await jobs.put("a2");
      return `${before} ${await jobs.drain(limited)}`;
    },
  },
  {
    title: "jobs ahead are lost where a claim may not have them",
    mutations: [
      {
        name: "list_ahead",
        from: "perform list_granted(",
        to: "perform array(select ctid from ready limit 0)::tid[] || (",
      },
    ],
    right: "a1 b1",
    run: async (jobs) => {
      await giveAhead(jobs);
      return jobs.drain(limited);
    },
  },
  {
    title: "a job that is too large for a claim is lost",
    mutations: [
      {
        name: "take_grant",
        from: "perform list_granted(",
        to: "perform array(select ctid from ready limit 0)::tid[] || (",
      },
    ],
    right: "a1 b1",
    run: async (jobs) => {
      await jobs.put("y1 z1");
      await jobs.put("a1 b1", { tags: ["large"] });
      await take(jobs, 2);
      return jobs.drain({ maxBytes: 10 });
    },
  },
  {
    title: "a grant of which no job is left is open for ever",
    mutations: [{ name: "take_grant", from: "perform return_grant(", to: "perform row(" }],
    right: "0 grants",
    run: async (jobs, db) => {
      const { taken } = await giveAhead(jobs, "z1 a1");
      await db.run(cancel(await jobs.idOf("a1")));
      await jobs.drain();
      await jobs.verbs.settle(taken, done);
      await jobs.drain();
      const { rows } = await db.pool.query("select count(*) from sluice.turn_grant");
      return `${rows[0].count} grants`;
    },
  },
  {
    title: "a job gets its turn ahead although an older one was committed late",
    mutations: [{ name: "dispatch", from: "v_look := take_back(v_look, v_late.keys, v_late.seqs);", to: "" }],
    right: "a1",
    run: async (jobs, db) => {
      await jobs.put("y1");
      await jobs.drain(); // the lane exists before the transaction begins
      const begin = (client: Parameters<typeof runOn>[0]) => runOn(client, enqueue(jobs.requests("a1")));
      await whileOpen(db, { begin, end: "commit" }, async () => {
        await jobs.put("z1");
        return takeOne(jobs);
      });
      await jobs.put("b1 a2");
      return ofKey("a", `${await takeOne(jobs)} ${await jobs.take()}`);
    },
  },
  {
    title: "a job behind one that has its turn ahead is forgotten",
    mutations: [{ name: "grant_ahead", from: "where key = any(p_batch.waited)", to: "where false" }],
    right: "z1 a1 a2",
    run: async (jobs) => {
      const { taken, names } = await giveAhead(jobs, "z1 a1 a2");
      await jobs.verbs.settle(taken, done);
      return `${names} ${await jobs.drain()}`;
    },
  },
  {
    title: "a key that gets its turn ahead for another worker has two",
    mutations: [{ name: "look_at_waiting", from: "(is_own or v_owners is not null) and", to: "is_own and" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put(`z1 ${letters("1")}`);
      await take(jobs, 40, onRing("w1"));
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "a worker takes what another one has ahead",
    mutations: [{ name: "grants_ahead", from: "where is_own or", to: "where true or" }],
    right: "",
    run: async (jobs) => {
      await jobs.put(letters("1"));
      await take(jobs, 40, onRing("w1"));
      return (await take(jobs, 40, onRing("w1"))).names;
    },
  },
  {
    title: "jobs ahead of a worker that is gone are nobody's",
    mutations: [{ name: "grants_ahead", from: "or seq <= p_batch.mark_seq or", to: "or" }],
    right: "28 jobs",
    run: async (jobs) => {
      await jobs.put(letters("1"));
      const { taken } = await take(jobs, 40, onRing("w1"));
      for (const name of ["later1", "last1"]) {
        await jobs.verbs.query("update sluice.key_cursor set next_at = next_at - interval '16 s'");
        await jobs.put(name);
        taken.push(...(await take(jobs, 1, onRing("w1"))).taken);
      }
      for (let claims = 0; claims < 5; claims++) taken.push(...(await take(jobs, 40, onRing("w1"))).taken);
      return `${taken.length} jobs`;
    },
  },
  {
    title: "a turn that came back and goes to another worker's job counts twice",
    mutations: [{ name: "write_key_states", from: "or p_batch.owners is not null or", to: "or" }],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put(`${letters("1")} ${letters("2")}`);
      const first = await take(jobs, 26, { run: 1 });
      await jobs.verbs.settle(first.taken, done);
      await take(jobs, 30, { run: 1, ...onRing("w1") });
      return `${(await wrongKeys(db.pool)).length} wrong`;
    },
  },
  {
    title: "a job that gets its turn ahead counts as locked by somebody else",
    mutations: [
      {
        name: "return_stuck",
        from: "where tid = any(p_granted.tids) and tid <> all(p_locked)",
        to: "where tid is not null and tid <> all(p_locked)",
      },
    ],
    right: "0 wrong",
    run: async (jobs, db) => {
      await jobs.put(`${letters("1")} ${letters("2")}`);
      const first = await take(jobs, 26, { run: 1 });
      await jobs.verbs.settle(first.taken, done);
      const own = await jobs.verbs.query<{ name: string }>(
        "select payload->>'name' as name from sluice.jobs where payload->>'name' like '%2' and partition_bucket = any($1)",
        [onRing("w1").buckets],
      );
      return holdCancel(jobs, db, String(own[0]?.name), async () => {
        await take(jobs, 30, { run: 1, ...onRing("w1") });
        return `${(await wrongKeys(db.pool)).length} wrong`;
      });
    },
  },
  {
    title: "jobs ahead come before a job of a better priority",
    mutations: [
      { name: "take_ahead", from: "if p_level.priority >= p_lanes.priorities[1] then", to: "if false then" },
    ],
    right: "plain",
    run: async (jobs) => {
      await giveAhead(jobs);
      await jobs.verbs.enqueueOne({ payload: { name: "plain" }, priority: 9 });
      return takeOne(jobs);
    },
  },
  {
    title: "jobs ahead come before a job with a key and a better priority",
    mutations: [
      {
        name: "take_ahead",
        from: "p_lanes.priorities[array_position(p_lanes.lanes, lane)] = p_lanes.priorities[1]",
        to: "true",
      },
    ],
    right: "c1",
    run: async (jobs) => {
      await giveAhead(jobs);
      await jobs.put("c1", { type: "other", priority: 9 });
      return (await take(jobs, 1, { types: ["echo", { type: "other", limits: { concurrency: 5 } }] })).names;
    },
  },
  {
    title: "a new policy does not count from the first claim on",
    mutations: [
      {
        name: "take_without_lock",
        from: "if p_batch.policy is distinct from",
        to: "if false and p_batch.policy is distinct from",
      },
    ],
    right: "false",
    run: async (jobs, db) => {
      await giveAhead(jobs);
      await take(jobs, 1, { policy: { onDead: "pass" } });
      const { rows } = await db.pool.query("select blocks from sluice.key_policy");
      return String(rows[0]?.blocks);
    },
  },
];

testMutations(scenarios);
