// Heartbeats tell an outside service that rounds run. They never delay or fail a round.
import { expect, test } from "vitest";
import { type Heartbeat, withHeartbeat } from "../../src/queue/heartbeat.ts";
import type { Answer, Sender } from "../../src/queue/ports.ts";

const ok: Answer = { status: 200, retryInSeconds: undefined, errorText: "" };

function heartbeatBy(send: Sender["send"]) {
  const warnings: string[] = [];
  const left: Promise<unknown>[] = [];
  const log = { info: () => {}, error: () => {}, warn: (event: string) => void warnings.push(event) };
  const heartbeat: Heartbeat = {
    url: "https://hc.example.com/uuid/",
    sender: { send },
    log,
    waitUntil: (work) => void left.push(work),
  };
  return { heartbeat, warnings, left };
}

test("a host that never answers does not delay a round", async () => {
  const { heartbeat } = heartbeatBy(() => Promise.withResolvers<Answer>().promise);
  expect(await withHeartbeat(heartbeat, async () => "done")).toBe("done");
});

test("a failed heartbeat does not fail the round, and is logged", async () => {
  const { heartbeat, left, warnings } = heartbeatBy(() => Promise.reject(new Error("no route")));
  expect(await withHeartbeat(heartbeat, async () => "done")).toBe("done");
  await Promise.all(left);
  expect(warnings).toEqual(["heartbeat failed", "heartbeat failed"]);
});

test("a failed round sends a failure and still fails", async () => {
  const urls: string[] = [];
  const { heartbeat, left } = heartbeatBy(async ({ url }) => {
    urls.push(url.replace(/rid=.*/, "rid"));
    return ok;
  });
  await expect(withHeartbeat(heartbeat, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await Promise.all(left);
  expect(urls).toEqual(["https://hc.example.com/uuid/start?rid", "https://hc.example.com/uuid/fail?rid"]);
});

test("the end is sent only after the start was answered", async () => {
  const urls: string[] = [];
  const started = Promise.withResolvers<Answer>();
  const { heartbeat, left } = heartbeatBy(({ url }) => {
    urls.push(url.replace(/\?rid=.*/, ""));
    return url.includes("/start") ? started.promise : Promise.resolve(ok);
  });
  await withHeartbeat(heartbeat, async () => {});
  expect(urls).toEqual(["https://hc.example.com/uuid/start"]);
  started.resolve(ok);
  await Promise.all(left);
  expect(urls).toEqual(["https://hc.example.com/uuid/start", "https://hc.example.com/uuid"]);
});
