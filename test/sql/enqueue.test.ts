// enqueue over the typed statement: what is stored, which defaults it fills in, and what is refused.
// enqueue-idempotency.test.ts tests idempotency keys.
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { NewJob, Payload } from "../../src/core/job.ts";
import { enqueue } from "../../src/core/sql/index.ts";
import { payloadBytes } from "../../src/edge/http/codec/payload.ts";
import { newJob } from "../support/jobs.ts";
import { inSession, sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { daySeconds, only, secondsBetween, secondsFromNow, times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);

describe("a batch", () => {
  test.each([1, 100, 10_000])("of %i jobs is written by one statement, in order", async (size) => {
    const answers = await queue.enqueue(...times(size, (n) => ({ payload: { n } })));
    const stored = await queue.query<{ id: string; n: number }>(
      "select id, (payload->>'n')::int as n from sluice.job order by id",
    );
    expect(stored.map((row) => row.n)).toEqual(times(size, (n) => n));
    expect(answers.map((answer) => answer.id)).toEqual(stored.map((row) => row.id));
    expect(await queue.count("ready")).toBe(size);
  });

  test("may mix types, queues, priorities and delays", async () => {
    const answers = await queue.enqueue(
      { type: "mail", priority: 9 },
      { type: "index", queue: "heavy", delaySeconds: 60 },
      { type: "mail" },
      { type: "index", queue: "heavy" },
    );
    expect(answers.map(({ type, queue: name }) => [type, name])).toEqual([
      ["mail", "default"],
      ["index", "heavy"],
      ["mail", "default"],
      ["index", "heavy"],
    ]);
    expect(answers.map((answer) => secondsFromNow(answer.scheduledAt) > 50)).toEqual([
      false,
      true,
      false,
      false,
    ]);
    const mail = await queue.claim({ types: ["mail"] });
    expect(mail.map((job) => job.id)).toEqual([answers[0]?.id, answers[2]?.id]);
    const heavy = await queue.claim({ queue: "heavy", types: ["index"] });
    expect(heavy.map((job) => job.id)).toEqual([answers[3]?.id]);
  });

  test("stores the same fields whether its jobs have equal options or not", async () => {
    const fields = {
      queue: "heavy",
      priority: 3,
      maxAttempts: 2,
      partitionKey: "p",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    const alike = await queue.enqueue(...times(2, (n) => ({ ...fields, payload: { n } })));
    const mixed = await queue.enqueue(...times(2, (n) => ({ ...fields, payload: { n } })), { type: "other" });
    for (const [index, answer] of alike.entries()) {
      const other = mixed[index] ?? answer;
      const [one, two] = [await queue.find(answer.id), await queue.find(other.id)];
      const own = {
        id: two.id,
        createdAt: two.createdAt,
        scheduledAt: two.scheduledAt,
        expiresAt: two.expiresAt,
      };
      expect({ ...one, ...own }).toEqual(two);
      expect(answer).toEqual({ ...other, id: one.id, scheduledAt: one.scheduledAt });
      expect(other.scheduledAt).toEqual(two.scheduledAt);
      expect(secondsBetween(one.createdAt, one.expiresAt)).toBe(30 * daySeconds);
    }
    const claimed = await queue.claim({ queue: "heavy", run: 10 });
    expect(claimed.map((job) => job.id)).toEqual([...alike, ...mixed.slice(0, 2)].map((job) => job.id));
    expect(await queue.count("ledger where enqueued = 2")).toBe(2);
  });

  test("of no jobs writes nothing", async () => {
    expect(await queue.enqueue()).toEqual([]);
    expect(await queue.count("ledger")).toBe(0);
  });
});

describe("a job", () => {
  test("is stored with every field that its producer set", async () => {
    const fields = {
      type: "mail",
      queue: "heavy",
      priority: 0,
      maxAttempts: 20,
      payload: { text: "ünï ✓", list: [1, null, { deep: true }] },
      scheduledAt: inSeconds(3600),
      expiresAt: inSeconds(7200),
      idempotencyKey: "order-1",
      partitionKey: "user-1",
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tags: ["b", "a"],
    };
    const id = await queue.enqueueOne(fields);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(await queue.find(id)).toEqual({
      ...fields,
      id,
      partitionBucket: expect.any(Number),
      fairKey: null,
      status: "pending",
      attempts: 0,
      createdAt: expect.any(Date),
      startedAt: null,
      completedAt: null,
      worker: null,
      errors: [],
      deadReason: null,
      output: null,
      chainId: null,
      chainIndex: 0,
      flowId: null,
      culprit: null,
      supersededBy: null,
      schedule: null,
    });
  });

  test("gets the default of each field that its producer omitted", async () => {
    const job = await queue.find(await queue.enqueueOne());
    expect(job).toMatchObject({
      queue: "default",
      priority: 5,
      maxAttempts: 5,
      tags: [],
      partitionKey: null,
      partitionBucket: null,
      fairKey: null,
    });
    expect(job.scheduledAt).toEqual(job.createdAt);
    expect(Math.abs(secondsFromNow(job.createdAt))).toBeLessThan(60);
    expect(secondsBetween(job.createdAt, job.expiresAt)).toBe(30 * daySeconds);
  });

  test("that is scheduled expires 30 days after it is due", async () => {
    const delayed = await queue.find(await queue.enqueueOne({ delaySeconds: 10 * daySeconds }));
    expect(secondsFromNow(delayed.scheduledAt)).toBeCloseTo(10 * daySeconds, -2);
    expect(secondsBetween(delayed.scheduledAt, delayed.expiresAt)).toBe(30 * daySeconds);
  });

  test("that is scheduled in the past is due now", async () => {
    const job = await queue.find(await queue.enqueueOne({ scheduledAt: inSeconds(-3600) }));
    expect(job.scheduledAt).toEqual(job.createdAt);
    expect(await queue.claim()).toHaveLength(1);
  });

  test("has the same times whatever the time zone of its producer's session", async () => {
    const fields = { scheduledAt: inSeconds(3600), expiresAt: inSeconds(7200), idempotencyKey: "zones" };
    const ids = new Set<string>();
    for (const zone of ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"]) {
      await inSession(db.pool, async (client) => {
        await client.query(`set timezone to '${zone}'`);
        const { rows } = await client.query("select sluice.enqueue_jobs($1)->0->>'id' as id", [
          JSON.stringify([
            {
              type: "echo",
              scheduled_at: fields.scheduledAt,
              expires_at: fields.expiresAt,
              idempotency_key: "zones",
            },
          ]),
        ]);
        ids.add(rows[0].id);
      });
    }
    expect(ids.size).toBe(1);
    expect(await queue.find(only([...ids]))).toMatchObject(fields);
  });

  test("expires after the same number of hours in a time zone whose clock changes meanwhile", async () => {
    for (const zone of ["UTC", "America/New_York"]) {
      await inSession(db.pool, async (client) => {
        await client.query(`set timezone to '${zone}'`);
        const { rows } = await client.query(`
          select extract(epoch from sluice.expiry_of(id::uuid, null) - at)::int as seconds
          from (select timestamptz '2026-10-20 12:00:00Z' as at) as moment
          cross join lateral (select left(sluice.id_at(at)::text, 14) || '7000-8000-000000000000' as id) as made`);
        expect(rows).toEqual([{ seconds: 30 * daySeconds }]);
      });
    }
  });
});

describe("an invalid job is refused, and none of its batch is written", () => {
  const noObject = [] as unknown as Payload;
  const nullTag = [null] as unknown as string[];
  const faults: [field: string, wrong: string, fields: Partial<NewJob>][] = [
    ["type", "empty", { type: "" }],
    ["type", "in capitals", { type: "Echo" }],
    ["type", "with a digit first", { type: "1st" }],
    ["type", "of 64 characters", { type: "a".repeat(64) }],
    ["type", "with a line break", { type: "echo\n" }],
    ["payload", "that is a list", { payload: noObject }],
    ["payload", "of 65,537 bytes", { payload: { text: "x".repeat(65_526) } }],
    ["payload", "of 65,537 bytes in small numbers", { payload: { a: Array(32_765).fill(0) } }],
    ["payload", "of numbers that are long when written out", { payload: { a: Array(300).fill(1e300) } }],
    ["payload", "of a megabyte", { payload: { text: "x".repeat(1_048_576) } }],
    ["queue", "with a space", { queue: "my queue" }],
    ["priority", "below 0", { priority: -1 }],
    ["priority", "above 9", { priority: 10 }],
    ["max_attempts", "of 0", { maxAttempts: 0 }],
    ["max_attempts", "of 21", { maxAttempts: 21 }],
    ["delay_seconds", "below 0", { delaySeconds: -1 }],
    ["delay_seconds", "above 100 years", { delaySeconds: 3_155_760_001 }],
    ["scheduled_at", "in more than 100 years", { scheduledAt: inSeconds(3_155_769_999) }],
    ["scheduled_at", "before 1970", { scheduledAt: new Date(-1) }],
    ["scheduled_at", "beside a delay", { delaySeconds: 1, scheduledAt: inSeconds(60) }],
    ["expires_at", "not after scheduled_at", { scheduledAt: inSeconds(60), expiresAt: inSeconds(60) }],
    ["idempotency_key", "empty", { idempotencyKey: "" }],
    ["idempotency_key", "of 256 characters", { idempotencyKey: "k".repeat(256) }],
    ["partition_key", "empty", { partitionKey: "" }],
    ["partition_key", "of 256 characters", { partitionKey: "k".repeat(256) }],
    ["fair_key", "empty", { fairKey: "" }],
    ["fair_key", "beside a partition key", { partitionKey: "p", fairKey: "f" }],
    ["tags", "with an empty one", { tags: ["a", ""] }],
    ["tags", "with one of 64 characters", { tags: ["t".repeat(64)] }],
    ["tags", "with a null", { tags: nullTag }],
    ["tags", "21 of them", { tags: times(21, (n) => `t${n}`) }],
  ];

  const tables = ["job", "ready", "scheduled", "lane", "ledger", "idempotency", "expiry", "job_tag"];

  test.each(faults)("%s: %s", async (field, _, fields) => {
    const good = newJob({ idempotencyKey: "good", tags: ["good"] });
    const refused = db.run(enqueue([good, newJob({ delaySeconds: 60 }), newJob(fields)]));
    await expect(refused).rejects.toMatchObject({
      code: "22023",
      message: expect.stringMatching(`^enqueue: ${field}: `),
    });
    for (const table of tables) expect([table, await queue.count(table)]).toEqual([table, 0]);
  });

  test.each(faults)("%s: %s, in a batch with equal options", async (field, _, fields) => {
    const good = { ...fields, ...(fields.payload && { payload: {} }) };
    const refused = db.run(enqueue([newJob(good), newJob(fields), newJob(good)]));
    await expect(refused).rejects.toMatchObject({
      code: "22023",
      message: expect.stringMatching(`^enqueue: ${field}: `),
    });
    for (const table of tables) expect([table, await queue.count(table)]).toEqual([table, 0]);
  });

  test.each([
    "scheduled_at => 'infinity'",
    "scheduled_at => '294000-01-01'",
    "scheduled_at => '0044-03-15 BC'",
    "expires_at => 'infinity'",
    "expires_at => '10000-01-01 00:00+00'",
    "expires_at => now()",
    "delay_seconds => 'NaN'",
    "tags => '{{a,b},{c,d}}'",
  ])("%s", async (option) => {
    expect(await sqlState(db.pool.query(`select sluice.enqueue('echo', ${option})`))).toBe("22023");
  });

  test("the limits themselves are allowed", async () => {
    await queue.enqueue(
      { type: `a${"-".repeat(62)}`, queue: "q", priority: 9, maxAttempts: 1, delaySeconds: 3_155_760_000 },
      { idempotencyKey: "k".repeat(255), partitionKey: "p".repeat(255) },
      { tags: times(20, (n) => "t".repeat(63 - n)), payload: { text: "x".repeat(65_525) } },
    );
    expect(await queue.count("job")).toBe(3);
  });

  test("an app cannot enqueue Sluice's own types, with enqueue() or enqueue_many()", async () => {
    for (const call of ["enqueue('sluice.canary')", "enqueue_many('sluice.canary', array['{}']::jsonb[])"])
      expect(await sqlState(db.pool.query(`select sluice.${call}`))).toBe("22023");
  });
});

describe("a payload may have 64 KiB of JSON text, in SQL and over HTTP", () => {
  const zeros = (count: number) => ({ a: Array(count).fill(0) });
  const textOf = (bytes: number) => ({ t: "x".repeat(bytes - 8) });
  test.each<[string, Payload, boolean]>([
    ["24 KB of zeros", zeros(12_000), true],
    ["65,535 bytes of zeros", zeros(32_764), true],
    ["65,536 bytes of text", textOf(65_536), true],
    ["65,537 bytes of text", textOf(65_537), false],
    ["spaces, colons and commas in a text", { t: ", : ".repeat(16_382) }, true],
    ["one more of them", { t: ", : ".repeat(16_383) }, false],
    ["escapes", { t: '\u0001\n"\\é😀'.repeat(3_000) }, true],
    ["more escapes", { t: '\u0001\n"\\é😀'.repeat(4_200) }, false],
    ["exponents", { a: Array(200).fill([1e300, -1.5e-7, 2e21, 5e-5]) }, false],
    ["few exponents", { a: Array(150).fill([1e300, -1.5e-7, 2e21, 5e-5]) }, true],
    ["members", Object.fromEntries(times(6_000, (n) => [`k${n}`, n % 2 === 0])), false],
    ["fewer members", Object.fromEntries(times(4_500, (n) => [`k${n}`, n % 2 === 0])), true],
  ])("%s", async (_, payload, isTaken) => {
    expect(payloadBytes(payload) <= 65_536).toBe(isTaken);
    for (const more of [{}, { tags: ["x"] }]) {
      const enqueued = db.run(enqueue([newJob({ payload, ...more })]));
      if (isTaken) await enqueued;
      else
        await expect(enqueued).rejects.toMatchObject({
          message: "enqueue: payload: must not be larger than 64 KiB",
        });
    }
  });

  test("SQL and TypeScript measure the same size for any payload", async () => {
    const value = fc.jsonValue({ stringUnit: "grapheme", maxDepth: 3 });
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), value, { maxKeys: 5 }), async (small) => {
        const copies = Math.max(1, Math.floor(80_000 / JSON.stringify(small).length));
        const payload = JSON.parse(JSON.stringify({ a: Array(copies).fill(small) }));
        const [measured] = await queue.query<{ bytes: number }>(
          "select sluice.json_bytes($1::jsonb) as bytes",
          [JSON.stringify(payload)],
        );
        const exact = payloadBytes(payload);
        if (exact > 65_536) expect(measured?.bytes).toBeGreaterThan(65_536);
        else expect(measured?.bytes).toBeLessThanOrEqual(65_536);
      }),
      { numRuns: 60 },
    );
  });
});

test.each([
  [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ],
  ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", null],
  [
    "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-x",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ],
  [
    "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
  ],
  ["01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x", null],
  ["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", null],
  ["00-00000000000000000000000000000000-b7ad6b7169203331-01", null],
  ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", null],
  ["00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", null],
  ["t", null],
])("the traceparent %s is stored as %s, by the W3C rules", async (traceparent, kept) => {
  const [alike, other] = await queue.enqueue({ traceparent }, { traceparent, tags: ["x"] });
  const alone = await queue.enqueueOne({ traceparent });
  for (const id of [alike?.id ?? "", other?.id ?? "", alone])
    expect((await queue.find(id)).traceparent).toBe(kept);
});

describe("the number of queues is bounded", () => {
  test("a new queue beyond the limit is refused, and existing queues still take jobs", async () => {
    await inSession(db.pool, async (client) => {
      await client.query("set sluice.max_queues = 2");
      const add = (name: string, priority = 5) =>
        client.query("select sluice.enqueue('echo', queue => $1, priority => $2)", [name, priority]);
      await add("a");
      await add("b");
      await expect(add("c")).rejects.toMatchObject({
        code: "22023",
        message: expect.stringMatching(/^queue: .*2 queues/),
      });
      for (let priority = 0; priority < 5; priority++) await add("a", priority);
      for (let priority = 0; priority < 3; priority++) await add("b", priority);
      await expect(add("b", 3)).rejects.toMatchObject({
        message: expect.stringMatching(/^queue: .*10 combinations/),
      });
      await add("b");
    });
  });
});
