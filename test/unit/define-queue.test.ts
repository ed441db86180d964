// The definitions of queues: their options are checked, and a registry answers with the rules of each queue.
import { describe, expect, test } from "vitest";
import { defineQueue, type QueueOptions } from "../../src/jobs/define-queue.ts";
import { createRegistry } from "../../src/jobs/registry.ts";

const defaults = { onDead: "block", maxRun: 100, concurrency: null, secondsApart: null };

describe("defineQueue", () => {
  test.each<[QueueOptions, object]>([
    [{}, defaults],
    [{ partitions: {}, shares: {} }, defaults],
    [{ partitions: { onDead: "pass" } }, { ...defaults, onDead: "pass" }],
    [{ partitions: { maxRun: 1 } }, { ...defaults, maxRun: 1 }],
    [{ shares: { concurrency: 4 } }, { ...defaults, concurrency: 4 }],
  ])("with %j fills in the defaults", (options, policy) => {
    expect(defineQueue("orders", options)).toEqual({ queue: "orders", policy });
  });

  test.each([
    [{ limit: 2, per: "second" }, 0.5],
    [{ limit: 4, per: "minute" }, 15],
    [{ limit: 1, per: "hour" }, 3600],
    [{ limit: 3, per: 90 }, 30],
  ] as const)("makes of the rate %j a time of %f s between two starts", (rate, secondsApart) => {
    expect(defineQueue("orders", { shares: { rate } }).policy).toEqual({ ...defaults, secondsApart });
  });

  test.each([
    [{ partitions: { onDead: "stop" } }, "partitions.onDead"],
    [{ partitions: { maxRun: 0 } }, "partitions.maxRun"],
    [{ partitions: { maxRun: 1001 } }, "partitions.maxRun"],
    [{ partitions: { run: 5 } }, "partitions.run"],
    [{ shares: { concurrency: 0 } }, "shares.concurrency"],
    [{ shares: { concurrency: 2 ** 31 } }, "shares.concurrency"],
    [{ shares: { rate: { limit: 0, per: "minute" } } }, "shares.rate.limit"],
    [{ shares: { rate: { limit: 1, per: "day" } } }, "shares.rate.per"],
    [{ concurrency: 4 }, "concurrency"],
  ])("refuses the invalid option %j, and the error names it", (bad, name) => {
    expect(() => defineQueue("orders", bad as QueueOptions)).toThrow(`queue "orders": ${name}: `);
  });

  test.each(["", "Upper", "1st", "a b", "x".repeat(64)])("refuses the name %j", (name) => {
    expect(() => defineQueue(name)).toThrow(/^queue ".*": queue: /);
  });
});

describe("a registry", () => {
  test("answers with the rules of a queue, and with the defaults for a queue that is not defined", () => {
    const registry = createRegistry([], [defineQueue("orders", { partitions: { onDead: "pass" } })]);
    expect(registry.policyOf("orders")).toEqual({ ...defaults, onDead: "pass" });
    expect(registry.policyOf("default")).toEqual(defaults);
  });

  test("refuses a queue that is defined twice", () => {
    expect(() => createRegistry([], [defineQueue("orders"), defineQueue("orders")])).toThrow(
      'queue "orders" is defined twice',
    );
  });
});
