// A job's options are listed in several places: the HTTP request, the TypeScript types, the SQL type new_job, the arguments
// of the SQL functions, and what GET shows. This file compares them all by name and by type, and compares the limits.
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { enqueueRequest, jobResponse } from "../../src/contract/jobs.ts";
import type { NewJob } from "../../src/core/job.ts";
import {
  type Debounce,
  type JobOptions,
  jobLimits,
  optionList,
  toFields,
} from "../../src/core/job-options.ts";
import { enqueue, enqueueMany, enqueueOne } from "../../src/core/sql/index.ts";
import { toJobResponse } from "../../src/edge/http/codec/job-response.ts";
import { newJob } from "../support/jobs.ts";
import { sqlState } from "../support/sessions.ts";
import { emptyQueue, useTestDatabase } from "../support/test-database.ts";
import { times, verbsOf } from "../support/verbs.ts";

const db = useTestDatabase();
const queue = verbsOf(db);
beforeEach(() => emptyQueue(db.pool));

const inSeconds = (seconds: number) => new Date(Math.floor(Date.now() / 1000 + seconds) * 1000);

/** A value for each option, other than its default. The compiler asks for every option. */
const samples: { [Name in keyof Required<JobOptions>]: NonNullable<JobOptions[Name]> } = {
  queue: "heavy",
  priority: 3,
  maxAttempts: 7,
  delaySeconds: 60,
  scheduledAt: inSeconds(120),
  expiresAt: inSeconds(7200),
  idempotencyKey: "key",
  partitionKey: "partition",
  fairKey: "share",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tags: ["b", "a"],
  after: { parts: ["01900000-0000-7000-8000-000000000000"] }, // so old that it counts as completed
  onBlockerDead: "run",
  debounce: { key: "key", mode: "last", seconds: 60 },
  throttle: { key: "key", seconds: 60 },
};
const waiting: JobOptions = { after: samples.after };
/** Options that belong to one job, so enqueue_many does not take them. */
const ofOneJob = ["idempotencyKey"];
/** A header, so it is not in the body. */
const inHeader = ["traceparent"];
/** GET shows the resulting time instead, and what a blocked job waits for. A debounce is told to the caller. */
const notShown = ["delaySeconds", "traceparent", "after", "onBlockerDead", "debounce", "throttle"];

/** SQL has them; the HTTP API and the TypeScript types do not yet. */
const onlyInSql = { after: "jsonb", on_blocker_dead: "text" };

const listed = Object.fromEntries(optionList.map(({ field, sqlType }) => [field, sqlType]));
const listedWithout = (names: readonly string[]) =>
  Object.fromEntries(
    optionList.filter(({ name }) => !names.includes(name)).map(({ field, sqlType }) => [field, sqlType]),
  );

describe("the TypeScript list of options equals", () => {
  const argumentsOf = async (name: string) => {
    const rows = await queue.query<{ name: string; type: string }>(
      `select name, format_type(type, null) as type
       from pg_proc cross join lateral unnest(proargnames, proargtypes::oid[]) as argument(name, type)
       where pronamespace = 'sluice'::regnamespace and proname = $1`,
      [name],
    );
    return Object.fromEntries(rows.map((row) => [row.name, row.type]));
  };

  test("the SQL type new_job, with smallint for small numbers", async () => {
    const rows = await queue.query<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, null) as type
       from pg_attribute where attrelid = 'sluice.new_job'::regclass`,
    );
    const fields = Object.fromEntries(rows.map((row) => [row.name, row.type.replace("smallint", "integer")]));
    expect(fields).toEqual({ type: "text", payload: "jsonb", ...listed, ...onlyInSql });
  });

  test("the arguments of enqueue, enqueue_many and make_job", async () => {
    expect(await argumentsOf("enqueue")).toEqual({ type: "text", payload: "jsonb", ...listed, ...onlyInSql });
    expect(await argumentsOf("enqueue_many")).toEqual({
      ...{ type: "text", payloads: "jsonb[]" },
      ...listedWithout(ofOneJob),
      ...onlyInSql,
    });
    expect(await argumentsOf("make_job")).toEqual({ type: "text", ...listed, ...onlyInSql });
  });

  test("the body of POST /v1/jobs", () => {
    const jsonTypes: Record<string, object> = {
      text: { type: "string" },
      integer: { type: "integer" },
      "double precision": { type: "number" },
      "timestamp with time zone": { type: "string", format: "date-time" },
      "text[]": { type: "array", items: expect.objectContaining({ type: "string" }) },
    };
    const { properties = {} } = z.toJSONSchema(enqueueRequest, { io: "input", unrepresentable: "any" });
    const { type, payload, ...options } = properties as Record<string, Schema>;
    const expected = Object.entries(listedWithout(inHeader));
    expect(Object.keys(options).toSorted()).toEqual(expected.map(([field]) => field).toSorted());
    for (const [field, sqlType] of expected)
      expect([field, valueSchema(options[field])]).toEqual([
        field,
        expect.objectContaining(jsonTypes[sqlType] ?? {}),
      ]);
  });

  test("what GET /v1/jobs/:id shows", () => {
    const fields = Object.keys(listedWithout(notShown));
    expect(fields.filter((field) => !(field in jobResponse.shape))).toEqual([]);
  });
});

describe("an option is stored and shown", () => {
  const shown = (option: string) => !notShown.includes(option);
  /** Without those that exclude another one. */
  const together = optionList.filter(
    ({ name }) => (shown(name) && name !== "fairKey") || name === "traceparent",
  );

  async function show(id: string | undefined): Promise<Record<string, unknown>> {
    const job = await queue.find(id ?? "");
    return { ...toJobResponse(job), traceparent: job.traceparent };
  }
  const inJson = (value: unknown) => (value instanceof Date ? value.toISOString() : value);

  test.each(optionList.filter(({ name }) => shown(name) || name === "traceparent"))(
    "$field alone, through each way to enqueue",
    async ({ name, field }) => {
      const options: JobOptions = { [name]: samples[name] };
      const job: NewJob = newJob(options);
      const ids = [
        (await db.run(enqueue([job])))[0]?.id,
        (await db.run(enqueue([newJob({ type: "other" }), { ...job, payload: {} }])))[1]?.id,
        await db.run(enqueueOne(job)),
      ];
      if (!ofOneJob.includes(name)) ids.push((await db.run(enqueueMany(job.type, [{}], options)))[0]);
      for (const id of ids) expect((await show(id))[field]).toEqual(inJson(samples[name]));
    },
  );

  test("all options together, each in its own field", async () => {
    const options = Object.fromEntries(together.map(({ name }) => [name, samples[name]]));
    const id = await db.run(enqueueOne(newJob(options)));
    expect(await show(id)).toMatchObject(
      Object.fromEntries(together.map(({ name, field }) => [field, inJson(samples[name])])),
    );
  });
});

test.each(optionList.filter(({ name }) => !["idempotencyKey", ...inHeader].includes(name)))(
  "two requests with one idempotency key that differ in $field conflict",
  async ({ name }) => {
    await db.run(enqueue([newJob({ idempotencyKey: "k" })]));
    const other = db.run(enqueue([newJob({ idempotencyKey: "k", [name]: samples[name] })]));
    expect(await sqlState(other)).toBe("SL422");
  },
);

test("a null option at the end of new_job changes no fingerprint, so one can be added", async () => {
  const fingerprint = "select sluice.fingerprint_of(sluice.make_job('a', queue => 'q'))::text as value";
  const before = await queue.query(fingerprint);
  await queue.query("alter type sluice.new_job add attribute added text");
  await queue.query(`create or replace function sluice.make_job_with_added() returns sluice.new_job language sql
    return jsonb_populate_record(null::sluice.new_job, '{"type": "a", "queue": "q"}')`);
  expect(
    await queue.query("select sluice.fingerprint_of(sluice.make_job_with_added())::text as value"),
  ).toEqual(before);
  await queue.query(
    "drop function sluice.make_job_with_added; alter type sluice.new_job drop attribute added",
  );
});

describe("the HTTP API and the database have the same limit for", () => {
  const cases: [what: string, atLimit: JobOptions, beyond: JobOptions][] = [
    ["names", { queue: `a${".".repeat(62)}` }, { queue: `a${".".repeat(63)}` }],
    ["the lowest priority", { priority: 0 }, { priority: -1 }],
    ["the highest priority", { priority: jobLimits.maxPriority }, { priority: jobLimits.maxPriority + 1 }],
    ["the fewest attempts", { maxAttempts: 1 }, { maxAttempts: 0 }],
    ["the most attempts", { maxAttempts: jobLimits.maxAttempts }, { maxAttempts: jobLimits.maxAttempts + 1 }],
    ["delays", { delaySeconds: jobLimits.maxDelaySeconds }, { delaySeconds: jobLimits.maxDelaySeconds + 1 }],
    ...(["idempotencyKey", "partitionKey", "fairKey"] as const).map(
      (name): [string, JobOptions, JobOptions] => [
        name,
        { [name]: "k".repeat(jobLimits.maxKeyLength) },
        { [name]: "k".repeat(jobLimits.maxKeyLength + 1) },
      ],
    ),
    ...debounceCases(),
    ["the number of tags", { tags: tags(jobLimits.maxTags) }, { tags: tags(jobLimits.maxTags + 1) }],
    [
      "the length of a tag",
      { tags: ["t".repeat(jobLimits.maxTagLength)] },
      { tags: ["t".repeat(jobLimits.maxTagLength + 1)] },
    ],
  ];

  test.each(cases)("%s", async (_, atLimit, beyond) => {
    for (const [options, isAllowed] of [
      [atLimit, true],
      [beyond, false],
    ] as const) {
      const body = JSON.parse(JSON.stringify({ type: "echo", ...toFields(options) }));
      expect(enqueueRequest.safeParse(body).success).toBe(isAllowed);
      expect(await sqlState(db.run(enqueue([newJob(options)])))).toBe(isAllowed ? "none" : "22023");
    }
  });

  test("names, also in the tables", async () => {
    const checks = await queue.query<{ text: string }>(
      `select pg_get_constraintdef(oid) as text from pg_constraint
       where conrelid = 'sluice.lane'::regclass and contype = 'c' and pg_get_constraintdef(oid) like '%~%'`,
    );
    expect(checks).toHaveLength(2);
    for (const { text } of checks) expect(text).toContain(jobLimits.namePattern.source);
  });
});

function debounceCases(): [what: string, atLimit: JobOptions, beyond: JobOptions][] {
  const { maxKeyLength, maxDelaySeconds, maxItems } = jobLimits;
  const last = (fields: object = {}): JobOptions => ({
    debounce: { key: "k", mode: "last", seconds: 1, ...fields } as Debounce,
  });
  const merge = (fields: object): JobOptions => last({ mode: "merge", ...fields });
  const throttle = (fields: object): JobOptions => ({ throttle: { key: "k", seconds: 1, ...fields } });
  const soon = inSeconds(60);
  const key = (length: number) => ({ key: "k".repeat(length) });
  return [
    ["the key of a debounce", last(key(maxKeyLength)), last(key(maxKeyLength + 1))],
    ["an empty key of a debounce", last(key(1)), last(key(0))],
    ["the key of a throttle", throttle(key(maxKeyLength)), throttle(key(maxKeyLength + 1))],
    ["the mode of a debounce", last({ mode: "first" }), last({ mode: "best" })],
    ["the longest debounce", last({ seconds: maxDelaySeconds }), last({ seconds: maxDelaySeconds + 1 })],
    ["the shortest debounce", last({ seconds: 0 }), last({ seconds: -1 })],
    ["a debounce without seconds", last(), last({ seconds: undefined })],
    [
      "the longest throttle",
      throttle({ seconds: maxDelaySeconds }),
      throttle({ seconds: maxDelaySeconds + 1 }),
    ],
    ["the shortest throttle", throttle({ seconds: 0.001 }), throttle({ seconds: 0 })],
    [
      "the longest wait",
      last({ maxWaitSeconds: maxDelaySeconds }),
      last({ maxWaitSeconds: maxDelaySeconds + 1 }),
    ],
    ["the shortest longest wait", last({ maxWaitSeconds: 1 }), last({ maxWaitSeconds: 0.5 })],
    ["the most items", merge({ maxItems }), merge({ maxItems: maxItems + 1 })],
    ["the fewest items", merge({ maxItems: 1 }), merge({ maxItems: 0 })],
    ["whole items", merge({ maxItems: 2 }), merge({ maxItems: 2.5 })],
    ["items that nobody merges", merge({ maxItems: 2 }), last({ maxItems: 2 })],
    ["fields of a debounce", last(), last({ more: 1 })],
    ["fields of a throttle", throttle({}), throttle({ mode: "last" })],
    ["both", last(), { ...last(), ...throttle({}) }],
    ["a delay with a debounce", { ...last(), delaySeconds: 0 }, { ...last(), delaySeconds: 1 }],
    ["a time with a debounce", { ...throttle({}), scheduledAt: soon }, { ...last(), scheduledAt: soon }],
    ["what waits for others with a debounce", { ...last(), after: [] }, { ...last(), ...waiting }],
    [
      "what waits for others with a throttle",
      { ...throttle({}), after: [] },
      { ...throttle({}), ...waiting },
    ],
  ];
}

interface Schema {
  anyOf?: Schema[];
  type?: string;
}

/** Drops `null`, which means the default. */
function valueSchema(schema: Schema | undefined): Schema | undefined {
  return schema?.anyOf?.find(({ type }) => type !== "null") ?? schema;
}

function tags(count: number): string[] {
  return times(count, (n) => `t${n}`);
}
