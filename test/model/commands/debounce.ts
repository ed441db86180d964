// Commands of producers that debounce or throttle.
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import type { Debounce } from "../../../src/core/job-options.ts";
import { enqueue } from "../../../src/core/sql/index.ts";
import { type DebounceRequest, maxItems } from "../debounce-rules.ts";
import { priorities, tickSeconds } from "../queue-model.ts";
import { command, types } from "./command.ts";

const keyed = { type: fc.constantFrom(...types), key: fc.constantFrom("d0", "d1") };
const common = (type: string) => ({ type, payload: {}, priority: priorities[type] ?? null, maxAttempts: 2 });

export const debounces = fc
  .record({
    ...keyed,
    mode: fc.constantFrom("first", "last", "merge"),
    waitTicks: fc.constantFrom(0, 1, 1, 2),
    longestTicks: fc.constantFrom(null, 3),
  })
  .map((request: DebounceRequest) =>
    command(`debounce ${JSON.stringify(request)}`, async (model, { db }) => {
      const { job, isUnclear } = model.debounces.find(request);
      const [told] = await db.run(enqueue([{ ...common(request.type), debounce: toDebounce(request) }]));
      ok(told);
      const found = isUnclear && told.outcome === "created" ? null : job;
      const expected = model.debounces.expect(request, found);
      deepStrictEqual(told.outcome, expected.outcome);
      deepStrictEqual(told.replacedId, expected.outcome === "replaced" ? found?.id : null);
      if (expected.id) deepStrictEqual(told.id, expected.id);
      model.debounces.apply(request, told, found);
      const text = "select jsonb_array_length(payload->'items') as items from sluice.job where id = $1";
      const { rows } = await db.pool.query(text, [told.id]);
      if (request.mode === "merge") deepStrictEqual(rows[0]?.items, model.debounces.itemsOf(told.id));
    }),
  );

export const throttles = fc.record({ ...keyed, ticks: fc.constantFrom(1, 2) }).map((request) =>
  command(`throttle ${JSON.stringify(request)}`, async (model, { db }) => {
    const { type, key, ticks } = request;
    const [told] = await db.run(
      enqueue([{ ...common(type), throttle: { key, seconds: ticks * tickSeconds } }]),
    );
    ok(told);
    const expected = model.debounces.throttle(request);
    deepStrictEqual(told.outcome, expected.outcome);
    if (expected.id) deepStrictEqual(told.id, expected.id);
    expected.apply(told.id);
  }),
);

function toDebounce({ key, mode, waitTicks, longestTicks }: DebounceRequest): Debounce {
  const seconds = waitTicks * tickSeconds;
  if (mode === "merge") return { key, mode, seconds, maxItems };
  return { key, mode, seconds, ...(longestTicks !== null && { maxWaitSeconds: longestTicks * tickSeconds }) };
}
