// A watch round that is killed while it delivers, as Cloudflare may do to any invocation, loses no notice.
import { expect, inject, test } from "vitest";
import { openInbox } from "../support/inbox.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { startWorkerd } from "../support/workerd.ts";

const db = useTestDatabase();
const watchCron = "1-59/2 * * * *";
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

test("when a watch round is killed before it has delivered a notice, the next round delivers it", async () => {
  const inbox = openInbox(inject("receiverUrl"), "killed");
  const workerd = await startWorkerd({
    worker: new URL("../../src/worker.ts", import.meta.url).pathname,
    bindings: {
      DATABASE_URL: db.url,
      SLUICE_NEON_ENDPOINT: inject("neonEndpoint"),
      SLUICE_ADMIN_KEY: "sk_the_key_of_the_fault_tests",
      SLUICE_ALLOW_PRIVATE_TARGETS: "true",
      SLUICE_ALARM_TARGETS: JSON.stringify([{ name: "ops", url: inbox.url, format: "generic", secret }]),
      SLUICE_ALARM_RULES: JSON.stringify({ queue_length_high: { above: 0, for_rounds: 1 } }),
    },
  });
  try {
    await db.pool.query("select sluice.enqueue('echo')");
    await inbox.answer(0); // the receiver does not answer, so the delivery stays under way
    const killed = workerd.fire(watchCron);
    await expect.poll(() => inbox.requests(), { timeout: 30_000 }).toHaveLength(1);
    workerd.kill();
    expect(await killed).toBe(false);
    await workerd.started();
    await inbox.answer(200);
    await db.pool.query("update sluice.delivery set next_try_at = now()"); // as if the time of that try were over
    expect(await workerd.fire(watchCron)).toBe(true);
    expect(await workerd.fire(watchCron)).toBe(true);
  } finally {
    await workerd.stop();
  }
  const requests = await inbox.requests(secret);
  expect(requests).toHaveLength(2); // the one that was cut off, and the one that was accepted
  expect(new Set(requests.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  for (const { body, headers, expectedSignature } of requests) {
    expect(headers["webhook-signature"]).toBe(expectedSignature);
    expect(JSON.parse(body)).toMatchObject({ type: "alarm.firing", data: { alarm: "queue_length_high" } });
  }
});
