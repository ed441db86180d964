// When the client retries: backoff, jitter, Retry-After and the deadline. The tests control the clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createClient, type SluiceRequestError } from "../../src/client/client.ts";

const startsAt = Date.parse("2030-01-01T00:00:00Z");

beforeEach(() => void vi.useFakeTimers({ now: startsAt }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Enqueues at a server that always refuses. Resolves to the time of each try and the end. */
async function triesOf({ headers = {}, timeoutMs }: { headers?: HeadersInit; timeoutMs?: number }) {
  const triedAtMs: number[] = [];
  const { enqueue } = createClient({
    url: "https://sluice.example",
    key: "sk",
    ...(timeoutMs ? { timeoutMs } : {}),
    fetch: async () => {
      triedAtMs.push(Date.now() - startsAt);
      return new Response("", { status: 503, headers });
    },
  });
  const ending = enqueue("echo", {}).catch((error: SluiceRequestError) => ({
    status: error.status,
    endedAtMs: Date.now() - startsAt,
  }));
  await vi.runAllTimersAsync();
  return { triedAtMs, ending: await ending };
}

describe("without a Retry-After", () => {
  test("the waits double up to five seconds, within ten seconds in all", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    const { triedAtMs, ending } = await triesOf({});
    expect(triedAtMs).toEqual([0, 200, 600, 1400, 3000, 6200]);
    expect(ending).toEqual({ status: 503, endedAtMs: 6200 }); // another 5 s would end past the deadline
  });

  test("each wait is a random part of its maximum (full jitter)", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.25);
    const { triedAtMs } = await triesOf({ timeoutMs: 500 });
    expect(triedAtMs).toEqual([0, 50, 150, 350]);
  });
});

describe("with a Retry-After", () => {
  test("in seconds, the client waits that long and then adds the jitter", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const { triedAtMs } = await triesOf({ headers: { "retry-after": "4" } });
    expect(triedAtMs).toEqual([0, 4100, 8300]);
  });

  test("as a date, the client does not retry before it", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const at = new Date(startsAt + 7000).toUTCString();
    const { triedAtMs } = await triesOf({ headers: { "retry-after": at }, timeoutMs: 7200 });
    expect(triedAtMs).toEqual([0, 7100]);
  });

  test("after the deadline, the client fails at once", async () => {
    const { triedAtMs, ending } = await triesOf({ headers: { "retry-after": "60" } });
    expect(triedAtMs).toEqual([0]);
    expect(ending).toEqual({ status: 503, endedAtMs: 0 });
  });

  test.each(["soon", "-5", ""])(
    "of %o, which is invalid, the client waits for its backoff only",
    async (retryAfter) => {
      vi.spyOn(Math, "random").mockReturnValue(1);
      const { triedAtMs } = await triesOf({ headers: { "retry-after": retryAfter }, timeoutMs: 500 });
      expect(triedAtMs).toEqual([0, 200]);
    },
  );
});
