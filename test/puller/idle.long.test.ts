// What idle pullers cost the database.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const deployment = usePullerDeployment({ countsStatements: true });
const { call, enqueue, pull, statusesOf } = deployment;
const seconds = 30;

test.each([1, 8])(
  "%i idle pullers on a queue with partition keys send at most one statement a second each",
  async (count) => {
    const made = await call("POST", "/v1/admin/keys", { name: "pullers", role: "worker" });
    const { key } = (await made.json()) as { key: string };
    const ids = await enqueue("work", [{}], { partitionKey: "a" });
    for (let n = 0; n < count; n++) pull({ key, waitSeconds: 5, handlers: { work: () => null } });
    await expect.poll(() => statusesOf(ids), { timeout: 20_000 }).toEqual(new Set(["completed"]));
    const database = deployment.databaseRelay();
    database?.clear();
    await sleep(seconds * 1000); // this measures a rate
    const each = (database?.requests.length ?? 0) / seconds / count;
    console.log(`${count} idle pullers: ${each.toFixed(2)} statements a second each`);
    expect(each).toBeGreaterThan(0);
    expect(each).toBeLessThanOrEqual(1);
  },
);
