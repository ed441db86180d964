// Every command against a real deployment, over the Worker or over plain SQL. What --json prints is what the contract says.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type * as z from "zod";
import { type OperationId, operations } from "../../src/contract/operations.ts";
import { useCliDeployment, type Way } from "./cli-deployment.ts";
import { until } from "./run-cli.ts";

const cli = useCliDeployment();

/** The answer of an operation, checked by its schema. */
// biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
function answerOf(id: OperationId, value: unknown, status = 200): any {
  const { [status]: schema } = operations[id].answers as Record<number, z.ZodType>;
  expect(schema?.safeParse(value).error).toBeUndefined();
  return value;
}

/** A dead letter of the type "fatal". */
async function makeDead(message = "no way"): Promise<string> {
  const id = await cli.enqueue("fatal", { message });
  await until("it is dead", async () => (await statusOf(id)) === "dead");
  return id;
}

async function statusOf(id: string): Promise<string> {
  const { rows } = await cli.db.pool.query("select status from sluice.jobs where id = $1", [id]);
  return rows[0]?.status;
}

export const describeEveryCommand = (way: Way) =>
  describe(`over the ${way}`, () => {
    const json = (args: string[], options: { code?: number; env?: Record<string, string> } = {}) =>
      cli.json(args, { way, ...options });
    const run = (...args: string[]) => cli.run(args, { way });

    /** The database has seen a job of each of these types. */
    beforeEach(async () => {
      await cli.enqueue("echo", { seen: true });
      await cli.enqueue("approval");
    });

    test("enqueue makes a job with every option that was given, and jobs get shows it", async () => {
      const key = randomUUID();
      const args = [
        "enqueue",
        "echo",
        '{"a": [1]}',
        "--queue",
        "orders",
        "--priority",
        "9",
        "--max-attempts",
        "3",
      ];
      const more = ["--delay-seconds", "3600", "--tags", "a", "--tags", "b", "--partition-key", "k"];
      const made = answerOf("enqueueJob", await json([...args, ...more, "--idempotency-key", key]), 201);
      const job = answerOf("getJob", await json(["jobs", "get", made.job_id]));
      expect(job).toMatchObject({
        type: "echo",
        payload: { a: [1] },
        queue: "orders",
        priority: 9,
        max_attempts: 3,
        tags: ["a", "b"],
        partition_key: "k",
        idempotency_key: key,
        waiting_for: { kind: "time" },
      });
    });

    test("enqueue reads the payload from a file or the standard input", async () => {
      const directory = mkdtempSync(join(tmpdir(), "sluice-cli-"));
      writeFileSync(join(directory, "payload.json"), '{"from": "file"}');
      const fromFile = await cli.run(["enqueue", "echo", "@payload.json"], { way, cwd: directory });
      const fromInput = await cli.run(["enqueue", "echo", "-"], { way, input: '{"from": "input"}' });
      rmSync(directory, { recursive: true });
      const payloads = await Promise.all(
        [fromFile, fromInput].map(async ({ stdout }) => {
          const { rows } = await cli.db.pool.query("select payload from sluice.jobs where id = $1", [
            stdout.trim(),
          ]);
          return rows[0].payload;
        }),
      );
      expect(payloads).toEqual([{ from: "file" }, { from: "input" }]);
    });

    test("enqueue refuses a wrong option and an unknown type, and makes no job", async () => {
      const before = await cli.db.pool.query("select count(*) from sluice.job");
      expect(await run("enqueue", "echo", "--priority", "10")).toMatchObject({ code: 2, stdout: "" });
      expect(await run("enqueue", "echo", "[1]")).toMatchObject({ code: 2 });
      expect(await run("enqueue", "echo", "{")).toMatchObject({ code: 2 });
      const rounded = await run("enqueue", "echo", '{"ref": 90071992547409931}');
      expect(rounded.code).toBe(2);
      expect(rounded.stderr).toContain(
        "ref: the number 90071992547409931 does not fit a double; send it as a string",
      );
      expect(await run("enqueue", "echo", "--partition-key", "a", "--fair-key", "b")).toMatchObject({
        code: 2,
      });
      const unknown = await run("enqueue", "no_such_type");
      expect(unknown.code).toBe(1);
      expect(unknown.stderr).toContain('"no_such_type"');
      expect((await cli.db.pool.query("select count(*) from sluice.job")).rows).toEqual(before.rows);
    });

    test("jobs list filters, and --all follows every page", async () => {
      await Promise.all(Array.from({ length: 5 }, () => cli.enqueue("approval")));
      const page = answerOf("listJobs", await json(["jobs", "list", "--type", "approval", "--limit", "2"]));
      expect(page.jobs).toHaveLength(2);
      const all = await run("jobs", "list", "--type", "approval", "--limit", "2", "--all", "--json");
      const ids = all.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).job_id);
      expect(new Set(ids).size).toBe(6);
      const lines = (await run("jobs", "list", "--type", "approval", "--all")).stdout.trim().split("\n");
      expect(lines.map((line) => line.split("\t")[0]).toSorted()).toEqual(ids.toSorted());
    });

    test("jobs cancel, resolve and wait say what has become of a job, with the exit code of its end", async () => {
      const [first, second] = [await cli.enqueue("approval"), await cli.enqueue("approval")];
      expect(await run("jobs", "cancel", first)).toMatchObject({
        code: 0,
        stdout: `${first} is cancelled\n`,
      });
      expect(await run("jobs", "cancel", first)).toMatchObject({ code: 1, stdout: "" });
      expect(await run("jobs", "wait", first)).toMatchObject({ code: 1 });
      expect(await run("jobs", "wait", second, "--timeout", "0")).toMatchObject({ code: 1 });
      answerOf("resolveJob", await json(["jobs", "resolve", second, "--output", '{"ok": 1}']));
      expect(await json(["jobs", "wait", second])).toMatchObject({ status: "completed", output: { ok: 1 } });
    });

    test("jobs get of an unknown id and of no id fails with a sentence", async () => {
      const unknown = "01900000-0000-7000-8000-000000000000";
      expect(await run("jobs", "get", unknown)).toMatchObject({ code: 1, stdout: "" });
      expect((await run("jobs", "get", "x")).code).toBeGreaterThan(0);
    });

    test("dead list, show, replay and discard", async () => {
      const [first, second] = [await makeDead("one\n\u001b[31mred"), await makeDead("two")];
      answerOf("listDeadLetters", await json(["dead", "list"]));
      answerOf("getDeadLetter", await json(["dead", "show", first]));
      const { stdout } = await run("dead", "list", "--type", "fatal");
      expect(stdout.split("\n")).toHaveLength(3);
      const shown = (await run("dead", "show", first)).stdout;
      expect(shown).not.toContain("\u001b");
      expect(shown).toMatch(/attempt 1\t\S+ \((drain|nudge)-\S+\) one\n/);
      answerOf("listDeadGroups", await json(["dead", "groups"]));
      const discarded = await json(["dead", "discard", second, "--note", "it was a test"]);
      expect(answerOf("discardDeadLetter", discarded)).toMatchObject({ status: "discarded" });
      const counted = await json(["dead", "replay", "--type", "fatal", "--dry-run"]);
      expect(answerOf("startDeadRun", counted)).toMatchObject({ matched: 1, dry_run: true });
      expect(await statusOf(first)).toBe("dead");
    });

    test("a run over all that match shows its progress until its end, and can be stopped", async () => {
      const ids = [await makeDead("one"), await makeDead("two")];
      const started = await json([
        "dead",
        "discard",
        "--type",
        "fatal",
        "--rate",
        "60/h",
        "--note",
        "a test",
        "--detach",
      ]);
      const { run_id } = answerOf("startDeadRun", started, 201);
      answerOf("getDeadRun", await json(["dead", "run", run_id]));
      expect((await run("dead", "runs")).stdout).toContain("type fatal");
      expect(answerOf("stopDeadRun", await json(["dead", "stop", run_id]))).toMatchObject({
        state: "stopped",
      });
      expect(await run("dead", "stop", run_id)).toMatchObject({ code: 1 });
      const { code, stdout } = await run("dead", "discard", "--reason", "fatal");
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^run \d+ /) });
      await until("both are discarded", async () => {
        const statuses = await Promise.all(ids.map(statusOf));
        return statuses.every((status) => status === "discarded");
      });
    });

    test("dead replay with an id replays that one, and refuses flags that are for many", async () => {
      const id = await makeDead();
      expect(await run("dead", "replay", id, "--type", "fatal")).toMatchObject({ code: 2 });
      expect(await run("dead", "replay")).toMatchObject({ code: 2 });
      expect(await run("dead", "replay", "--type", "fatal", "--rate", "fast")).toMatchObject({ code: 2 });
      expect(await statusOf(id)).toBe("dead");
      const { code, stdout } = await run("dead", "replay", id);
      expect({ code, stdout }).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`${id} is pending again`),
      });
      if (way === "database") expect(stdout).toContain("starts with the next cron");
      expect((await run("dead", "discard", "x")).code).toBeGreaterThan(0);
    });

    test("queues and types are listed, paused and resumed", async () => {
      answerOf("listQueues", await json(["queues", "list"]));
      answerOf("pauseQueue", await json(["queues", "pause", "default"]));
      expect((await run("queues", "list")).stdout).toContain("default\tpaused");
      expect(await run("queues", "resume", "default")).toMatchObject({ stdout: "default is running\n" });
      answerOf("listJobTypes", await json(["types", "list"]));
      answerOf("pauseJobType", await json(["types", "pause", "echo"]));
      expect((await run("types", "list")).stdout).toContain("echo\tdefault\tpaused");
      answerOf("resumeJobType", await json(["types", "resume", "echo"]));
      expect(await run("queues", "pause", "no_such_queue")).toMatchObject({ code: 1 });
      answerOf("listPartitions", await json(["queues", "blocked", "default"]));
    });

    test("schedules are made, listed, shown, paused, resumed, run and deleted", async () => {
      const name = `s_${way}`;
      const made = await json(["schedules", "put", name, "--cron", "0 2 * * *", "--type", "echo"]);
      expect(answerOf("putSchedule", made)).toMatchObject({ name, cron: "0 2 * * *", time_zone: "UTC" });
      answerOf("listSchedules", await json(["schedules", "list"]));
      expect(answerOf("pauseSchedule", await json(["schedules", "pause", name]))).toMatchObject({
        paused: true,
      });
      answerOf("getSchedule", await json(["schedules", "show", name]));
      answerOf("resumeSchedule", await json(["schedules", "resume", name]));
      answerOf("runSchedule", await json(["schedules", "run", name]), 201);
      expect(await run("schedules", "put", name, "--cron", "bad", "--type", "echo")).toMatchObject({
        code: 2,
      });
      expect(await run("schedules", "put", name, "--type", "echo")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--cron: is required"),
      });
      answerOf("deleteSchedule", await json(["schedules", "delete", name]));
      expect(await run("schedules", "run", name)).toMatchObject({ code: 1 });
    });

    test("flows are listed, shown and cancelled", async () => {
      const jobs = [
        { ref: "a", type: "approval" },
        { ref: "b", type: "echo", after: ["a"] },
      ];
      const { flow_id: flow = "" } = await cli.post("/v1/flows", { jobs });
      answerOf("listFlows", await json(["flows", "list"]));
      expect(answerOf("getFlow", await json(["flows", "show", flow]))).toMatchObject({ total: 2 });
      expect((await run("flows", "show", flow)).stdout).toContain("blocked");
      expect(answerOf("cancelFlow", await json(["flows", "cancel", flow]))).toMatchObject({ cancelled: 2 });
    });

    test("a signal is sent once", async () => {
      const key = randomUUID();
      answerOf("sendSignal", await json(["signals", "send", "go", key, '{"n": 1}']), 202);
      expect(await json(["signals", "send", "go", key])).toMatchObject({ deduplicated: true });
    });

    test("keys are created, used, listed and revoked, and every change is in the audit log", async () => {
      const made = answerOf("addKey", await json(["keys", "create", `of ${way}`, "--role", "viewer"]), 201);
      const env = { SLUICE_KEY: made.key };
      expect(await cli.run(["jobs", "list"], { env })).toMatchObject({ code: 0 });
      expect(await cli.run(["queues", "pause", "default"], { env })).toMatchObject({ code: 1 });
      answerOf("listKeys", await json(["keys", "list"]));
      expect(await run("keys", "create", "x", "--role", "king")).toMatchObject({ code: 2 });
      answerOf("revokeKey", await json(["keys", "revoke", made.id]));
      const { entries } = answerOf("listAudit", await json(["audit", "--limit", "2"]));
      const actor = way === "worker" ? "admin" : expect.stringMatching(/^sluice cli \(/);
      expect(entries.map((entry: { actor: string }) => entry.actor)).toEqual([actor, actor]);
    });

    test("alarms are listed, tested and silenced", async () => {
      answerOf("listAlarms", await json(["alarms", "list"]));
      answerOf("sendTestNotice", await json(["alarms", "test"]));
      const until = "2099-01-01T00:00:00Z";
      answerOf("silenceAlarm", await json(["alarms", "silence", "queue_growing", "--until", until]));
      expect(await run("alarms", "silence", "queue_growin", "--until", until)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("did you mean queue_growing?"),
      });
    });

    test("the history of alarms and their deliveries are listed, and a silence ends", async () => {
      const until = "2099-01-01T00:00:00Z";
      await json(["alarms", "silence", "queue_growing", "--until", until, "--reason", "planned"]);
      answerOf("unsilenceAlarm", await json(["alarms", "unsilence", "queue_growing"]));
      const { events } = answerOf("listAlarmHistory", await json(["alarms", "history", "--limit", "2"]));
      expect(events).toMatchObject([{ event: "unsilenced" }, { event: "silenced", reason: "planned" }]);
      answerOf("listDeliveries", await json(["alarms", "deliveries"]));
    });

    test("workers, rounds and a queue are shown", async () => {
      answerOf("listWorkers", await json(["workers"]));
      answerOf("listRounds", await json(["rounds"]));
      await json(["enqueue", "echo", "{}"]);
      answerOf("getQueue", await json(["queues", "show", "default"]));
      expect((await run("queues", "show", "default")).stdout).toContain("default");
    });

    test("status shows the books of every queue, and with --json the four answers", async () => {
      await makeDead();
      expect((await run("status")).stdout).toMatch(/1 dead/);
      const status = (await json(["status"])) as Record<string, unknown>;
      answerOf("getStats", status.stats);
      answerOf("getHealth", status.health);
      answerOf("listQueues", { queues: status.queues });
    });

    test("check ends with 0, and with 4 when there is a dead letter", async () => {
      expect(await run("check")).toMatchObject({ code: 0, stdout: "no dead letters, no firing alarms\n" });
      await makeDead();
      expect(await run("check")).toMatchObject({ code: 4, stdout: "1 dead letter of fatal in default\n" });
      expect(await json(["check"], { code: 4 })).toMatchObject({ dead_letters: 1, firing: [] });
    });

    test("doctor names what is wrong, and what is right", async () => {
      for (const cron of ["* * * * *", "*/2 * * * *", "1-59/2 * * * *"]) await cli.fire(cron);
      const findings = (await json(["doctor"])) as { check: string; level: string }[];
      expect(findings.filter(({ level }) => level === "wrong")).toEqual([]);
      const checks = findings.map(({ check }) => check);
      expect(checks).toEqual(
        expect.arrayContaining(["schema version", "schema files", "cron drain", "oldest transaction"]),
      );
    });

    test.runIf(way === "database")(
      "doctor --database names the files that differ from this release, and ends with 4",
      async () => {
        await cli.db.pool.query(
          "update sluice.migration set checksum = 'old' where name = 'functions/claim.sql'",
        );
        const { code, stdout } = await cli.run(["doctor"], { way: "database" });
        expect(code).toBe(4);
        expect(stdout).toMatch(/WRONG\tschema files\t1 differ from this release \(functions\/claim\.sql\)/);
      },
    );
  });
