// Thousands of malformed bodies: every answer is one that the API documents, and never a 500.
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { problem } from "../../src/contract/problem.ts";
import { definePulledJob } from "../../src/index.ts";
import { useDeployment } from "./deployment.ts";

const { call, look, query } = useDeployment([
  definePulledJob("any", { payload: z.record(z.string(), z.json()) }),
  definePulledJob("strict", { payload: z.strictObject({ n: z.number() }) }),
]);
const runs = 1250;
const perRun = 8;

const oddText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "\0",
    "\ud800",
    "\udfff",
    "__proto__",
    "constructor",
    "",
    " ",
    "a".repeat(300),
    "2030-13-45T00:00:00Z",
  ),
);
const oddValue = fc.oneof(
  { depthSize: "small" },
  fc.jsonValue(),
  oddText,
  fc.double(),
  fc.bigInt().map(String),
  fc.constantFrom(null, -1, 0, 9, 10, 1e308, 2 ** 53, "2030-01-01T00:00:00Z", [], {}, [[[]]]),
);
const names = [
  "type",
  "payload",
  "queue",
  "priority",
  "max_attempts",
  "delay_seconds",
  "scheduled_at",
  "expires_at",
];
const rest = ["idempotency_key", "partition_key", "fair_key", "tags", "unknown"];
const anyText = fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 });
const sane = fc.record(
  {
    type: fc.constantFrom("any", "any", "any", "any", "strict", "nobody"),
    payload: fc.dictionary(anyText, fc.jsonValue({ stringUnit: "grapheme" })),
    queue: fc.constantFrom("default", "side"),
    priority: fc.nat(9),
    delay_seconds: fc.nat(1000),
    idempotency_key: anyText,
    tags: fc.array(anyText, { maxLength: 20 }),
  },
  { requiredKeys: ["type", "payload"] },
);
const oddField = fc
  .tuple(fc.constantFrom(...names, ...rest), oddValue)
  .map(([name, value]) => ({ [name]: value }));
const job = fc.oneof(
  { arbitrary: sane, weight: 3 },
  { arbitrary: fc.tuple(sane, oddField).map(([plain, odd]) => ({ ...plain, ...odd })), weight: 1 },
);
const pulled = fc.dictionary(
  fc.constantFrom("worker_id", "queue", "types", "limit", "lease_seconds", "lease", "error"),
  oddValue,
);
const id = "019a0000-0000-7000-8000-000000000000";

const request = fc.oneof(
  { arbitrary: fc.record({ path: fc.constant("/v1/jobs"), body: job }), weight: 4 },
  fc.record({
    path: fc.constant("/v1/jobs/batch"),
    body: fc.record({ jobs: fc.array(job, { maxLength: 4 }) }),
  }),
  fc.record({
    path: fc.constantFrom("/v1/claims", "/v1/settlements", `/v1/jobs/${id}/fail`, `/v1/jobs/${id}/extend`),
    body: pulled,
  }),
  fc.record({
    path: fc.constantFrom("/v1/admin/keys", "/v1/admin/dlq/replay", `/v1/admin/dlq/${id}/replay`),
    body: fc.dictionary(fc.constantFrom("name", "role", "job_types", "type", "count", "payload"), oddValue),
  }),
  fc.record({ path: fc.constantFrom("/v1/jobs", "/v1/claims"), body: oddValue }),
);
/** The body as JSON, sometimes cut off, doubled, or with a stray character in it. */
const sent = fc
  .tuple(request, fc.constantFrom("whole", "whole", "whole", "cut", "twice", "stray"), fc.nat())
  .map(([{ path, body }, how, at]) => {
    const text = JSON.stringify(body) ?? "";
    const position = text.length === 0 ? 0 : at % text.length;
    if (how === "cut") return { path, body: text.slice(0, position) };
    if (how === "twice") return { path, body: text + text };
    if (how === "stray") return { path, body: `${text.slice(0, position)}\u0001${text.slice(position)}` };
    return { path, body: text };
  });

test("10,000 malformed bodies each get a documented answer, never a 500", {
  timeout: 240_000,
}, async () => {
  const statuses = new Map<number, number>();
  let readBack = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(sent, { minLength: perRun, maxLength: perRun }), async (requests) => {
      const answers = await Promise.all(
        requests.map(({ path, body }) => call(path, { method: "POST", body })),
      );
      for (const [index, response] of answers.entries()) {
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        const text = await response.text();
        expect(
          [200, 201, 400, 403, 404, 409, 413, 422],
          `${JSON.stringify(requests[index])} → ${text}`,
        ).toContain(response.status);
        if (response.status >= 400) problem.parse(JSON.parse(text));
        const { path = "", body = "" } = requests[index] ?? {};
        if (path === "/v1/jobs" && response.status === 201) {
          const { payload } = JSON.parse(body);
          expect((await look(JSON.parse(text).job_id)).payload).toEqual(payload);
          readBack++;
        }
      }
    }),
    { numRuns: runs },
  );
  console.log("statuses of the odd bodies:", Object.fromEntries(statuses));
  expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBe(runs * perRun);
  expect(readBack).toBeGreaterThan(1000);
  const [balance] = await query<{ ok: boolean }>(
    "select sum(enqueued) = sum(pending + leased + completed + dead + discarded + cancelled) as ok from sluice.books",
  );
  expect(balance?.ok).toBe(true);
});
