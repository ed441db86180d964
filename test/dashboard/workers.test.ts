// Workers: who is alive, the ring of each queue, and rounds with their reasons.
import { beforeEach, describe, expect, test } from "vitest";
import { bucketCount, ownersOf } from "../../src/core/policy/hash-ring.ts";
import { arcsOf } from "../../src/dashboard/pages/workers/ring.tsx";
import { crons, useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
let viewer: Visitor;
beforeEach(async () => {
  viewer = await signedIn(deployment, "viewer");
});

const register = (worker_id: string, queues: string[]) =>
  deployment.call("/v1/workers", { method: "POST", body: JSON.stringify({ worker_id, queues }) });

test("without workers and rounds the page says how they come", async () => {
  const text = await viewer.page("/workers");
  expect(text).toContain("No live workers");
  expect(text).toContain("/v1/workers -d");
  expect(text).toContain("No round has run yet");
});

describe("the ring", () => {
  test("is drawn for the queue that the URL names, and its shares are those of the workers", async () => {
    await register("a", ["orders"]);
    await register("b", ["orders", "media"]);
    await register("<c>", ["orders"]);
    const text = await viewer.page("/workers?queue=orders");
    expect(text).toContain("Hash ring of the queue orders");
    expect(text.match(/<path class="h\d" d="M/g)).toHaveLength(3);
    const owned = ownersOf(["<c>", "a", "b"]).filter((owner) => owner === "b").length;
    expect(text).toContain(`C b: ${owned} buckets`); // by name: <c>, a, b
    expect(text).not.toContain("<c>");
    const media = await viewer.page("/workers?queue=media");
    expect(media).toContain(`A b: ${bucketCount} buckets`);
    expect(media).toContain("100.0 %");
    expect(await viewer.page("/workers?queue=unknown")).toContain("Hash ring of the queue orders");
  });

  test.each([1, 2, 7, 200])("of %i workers has every bucket in one arc", (workers) => {
    const owners = ownersOf(Array.from({ length: workers }, (_, n) => `worker-${n}`));
    const arcs = arcsOf(owners);
    const covered = arcs.flatMap(({ owner, from, to }) =>
      Array.from({ length: to - from }, (_, n) => ({ bucket: from + n, owner })),
    );
    expect(covered).toEqual(owners.map((owner, bucket) => ({ bucket, owner })));
  });
});

describe("rounds", () => {
  test("say why they ended, and reap rounds what each step did", async () => {
    await deployment.fire(crons.drain);
    await deployment.fire(crons.reap);
    const text = await viewer.page("/workers");
    expect(text).toContain("queue was empty");
    expect(text).toMatch(/<summary>\d+ steps<\/summary>/);
    const drains = await viewer.page("/workers?kind=drain");
    expect(drains).not.toMatch(/<summary>\d+ steps<\/summary>/);
    expect(await viewer.page("/workers?kind=nudge")).toContain("None of this kind.");
  });

  test.each(["before=x", "before=99999999999999999999", "kind=x"])("%s is ignored", async (query) => {
    await deployment.fire(crons.drain);
    expect(await viewer.page(`/workers?${query}`)).toContain("queue was empty");
  });
});
