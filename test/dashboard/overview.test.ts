// The overview: charts of three ranges with what they mark, and queues with what holds them up.
import { beforeEach, describe, expect, test } from "vitest";
import { useDeployment } from "../worker/deployment.ts";
import { makeOneOfEach, note } from "./one-of-each.ts";
import { signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
let viewer: Visitor;
beforeEach(async () => {
  viewer = await signedIn(deployment, "viewer");
});

const hitsOf = (text: string, id: string) =>
  [
    ...(text.split(`id="${id}"`)[1]?.split("</figure>")[0] ?? "").matchAll(
      /class="hit"[^>]*><title>([^<]*)/g,
    ),
  ].map(([, title = ""]) => title);

test("an empty one says how to make the first job", async () => {
  const text = await viewer.page("/");
  expect(text).toContain("All is well.");
  expect(text).toContain("No jobs yet");
  expect(text).toContain("/v1/jobs -d");
});

describe("the charts", () => {
  test.each([
    ["", 30],
    ["?range=30m", 30],
    ["?range=3h", 36],
    ["?range=24h", 48],
    ["?range=7d", 30],
  ])("of /%s have %i buckets", async (query, buckets) => {
    await deployment.enqueueMany("note", [{ text: "a" }, { text: "b" }]);
    const text = await viewer.page(`/${query}`);
    const waiting = hitsOf(text, "c-len");
    expect(waiting).toHaveLength(buckets);
    expect(waiting.at(-1)).toMatch(/^\d\d:\d\d: 2 due$/);
    expect(hitsOf(text, "c-done").at(-1)).toContain("has not ended");
  });

  test("say what happened before the record began: nothing is known of it", async () => {
    await deployment.enqueueMany("note", [{ text: "a" }]);
    const text = await viewer.page("/?range=24h");
    expect(hitsOf(text, "c-len")[0]).toContain("nothing was recorded");
    expect(text).toContain("nothing is drawn before");
  });

  test("mark pauses, in the picture, in the tooltip of their bucket and in words", async () => {
    await makeOneOfEach(deployment);
    await deployment.call("/v1/admin/queues/default/pause", { method: "POST" });
    const text = await viewer.page("/");
    expect(text.match(/<line class="mark"/g)).toHaveLength(3); // one in each chart
    const lastTwo = hitsOf(text, "c-bad").slice(-2).join(" "); // a minute may begin between the death and the pause
    expect(lastTwo).toContain("1 death");
    expect(lastTwo).toContain("queue default paused");
    expect(text).toContain("Dashed: 1 pause or alarm");
  });
});

test("a queue is named with what holds it up, and leads to its page", async () => {
  await makeOneOfEach(deployment);
  await deployment.call("/v1/admin/queues/default/pause", { method: "POST" });
  const text = await viewer.page("/");
  expect(text).toContain('<a href="/queues/default">default</a> <span class="chip is-warn">paused</span>');
});
