// How often a waiting claim claims. The tests control the clock.
import { expect, test } from "vitest";
import type { Claimed } from "../../src/core/sql/claim.ts";
import { claimWithin } from "../../src/edge/http/claim-waiting.ts";
import { createManualClock } from "../support/manual-clock.ts";

const none: Claimed = { jobs: [], hasMore: false, hasLinks: false, settled: [], workers: null };
const some = { ...none, jobs: [{ id: "j1" }] } as unknown as Claimed;

const inTenths = (ms: number) => Math.round(ms / 100);

/** Each claim takes `claimMs`. Resolves to the times of the claims and of the answer. */
async function claimsOf(options: {
  waitSeconds: number;
  claimMs?: number;
  answers?: Claimed[];
  goesAtMs?: number;
}) {
  const { waitSeconds, claimMs = 0, answers = [], goesAtMs } = options;
  const clock = createManualClock();
  const startMs = clock.nowMs();
  const client = new AbortController();
  if (goesAtMs !== undefined) clock.setTimer(goesAtMs, () => client.abort());
  const claimedAtMs: number[] = [];
  let answer: Claimed | undefined;
  const claiming = claimWithin({ clock, waitSeconds, signal: client.signal }, async () => {
    claimedAtMs.push(clock.nowMs() - startMs);
    if (claimMs > 0) await clock.sleep(claimMs);
    return answers.shift() ?? none;
  }).then((claimed) => {
    answer = claimed;
    return clock.nowMs() - startMs;
  });
  while (!answer) {
    clock.advance(1);
    for (let n = 0; n < 10; n++) await Promise.resolve();
  }
  return { claimedAtMs, answeredAtMs: await claiming, answer };
}

test("without a wait there is one claim", async () => {
  expect((await claimsOf({ waitSeconds: 0 })).claimedAtMs).toEqual([0]);
});

test.each([1, 2, 3, 5, 10, 20])(
  "in %i s there is at most one claim a second, and the last one is at the end",
  async (waitSeconds) => {
    const { claimedAtMs, answeredAtMs } = await claimsOf({ waitSeconds, claimMs: 20 });
    const gaps = claimedAtMs.slice(1).map((ms, index) => ms - (claimedAtMs[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(990);
    expect(Math.max(...gaps)).toBeLessThan(2250);
    expect(Math.abs((claimedAtMs.at(-1) ?? 0) - waitSeconds * 1000)).toBeLessThan(10);
    expect(answeredAtMs - waitSeconds * 1000).toBeLessThan(50);
  },
);

test("the answer comes with the first job", async () => {
  const { claimedAtMs, answer } = await claimsOf({ waitSeconds: 20, answers: [none, none, some] });
  expect(answer).toBe(some);
  expect(claimedAtMs.map(inTenths)).toEqual([0, 15, 31]);
});

test("there is no claim after the client has gone", async () => {
  const { claimedAtMs, answeredAtMs } = await claimsOf({ waitSeconds: 20, goesAtMs: 1600 });
  expect(claimedAtMs.map(inTenths)).toEqual([0, 15]);
  expect(inTenths(answeredAtMs)).toBe(31);
});
