// A worker in a process of its own, as a supervisor stops it.
import { type ChildProcess, spawn } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import { usePullerDeployment } from "../support/puller-deployment.ts";

const { db, enqueue, key, look, relay } = usePullerDeployment();
const patience = { timeout: 20_000, interval: 20 };
const script = new URL("worker-process.ts", import.meta.url).pathname;
const running: { child: ChildProcess; ended: Promise<unknown> }[] = [];

function startProcess(keyOfWorker = key) {
  const child = spawn(process.execPath, [script, relay().url, keyOfWorker], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  running.push({ child, ended });
  return { child, output: () => output, ended };
}

afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill("SIGKILL");
    await ended;
  }
});

test.each(["SIGTERM", "SIGINT"] as const)(
  "after %s running work is finished and settled, nothing stays leased, and the process ends by itself",
  async (signal) => {
    const ids = await enqueue(
      "work",
      Array.from({ length: 20 }, () => ({ ms: 400 })),
    );
    const { child, output, ended } = startProcess();
    await expect.poll(() => output().match(/started/g)?.length ?? 0, patience).toBeGreaterThanOrEqual(2);
    child.kill(signal);
    expect(await ended).toBe(0);
    expect(output()).toMatch(/stopped\n$/);
    const startedIds: string[] = output().match(/(?<=started )\S+/g) ?? [];
    for (const id of ids) {
      const isStarted = startedIds.includes(id);
      expect(await look(id)).toMatchObject(
        isStarted ? { status: "completed", output: "finished" } : { status: "pending", attempts: 0 },
      );
    }
    expect(startedIds.length).toBeLessThan(ids.length);
    expect((await db.pool.query("select from sluice.lease")).rowCount).toBe(0);
  },
);

test("a process whose key is refused ends with an error that says so", async () => {
  const { output, ended } = startProcess("sk_of_nobody");
  expect(await ended).not.toBe(0);
  expect(output()).toContain("Missing or unknown API key");
});
