// The texts of the command line, and that they agree with the code: help, examples, suggestions, docs/cli.md, and the flags
// with the fields of the contract.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { cliReference } from "../../infra/cli-reference.ts";
import { commandTable, type TableEntry } from "../../src/cli/command-table.ts";
import { checkFields, contractFlags, fieldFlags } from "../../src/cli/contract-flags.ts";
import { parseCommand } from "../../src/cli/parse.ts";
import { helpOf, operationOf } from "../../src/cli/run-command.ts";
import { operations } from "../../src/contract/operations.ts";
import { runCli, useCli } from "./run-cli.ts";

useCli();

const all = (
  await Promise.all(
    Object.entries<TableEntry>(commandTable).map(async ([group, entry]) =>
      Object.entries((await entry.load()).commands).map(([name, command]) => ({
        name: `${group} ${name}`.trim(),
        command,
      })),
    ),
  )
).flat();

describe.each(all)("sluice $name", ({ name, command }) => {
  const operation = operationOf(command);

  test("has a help text with a summary, examples and every flag", () => {
    const text = helpOf(name, command);
    expect(text).toMatch(new RegExp(`^usage: sluice ${name}`));
    expect(text.split("\n\n")[1]?.length).toBeGreaterThan(5);
    expect(command.examples).not.toEqual([]);
    for (const flag of contractFlags(operation, command)) expect(text).toContain(`--${flag.name}`);
  });

  test.each(command.examples)("example: %s", (example) => {
    expect(example.startsWith(name) || example.includes(`sluice ${name}`)).toBe(true);
    const words =
      example.slice(example.indexOf(name) + name.length).split(/ [|<>] | \|\| | && |\)$/)[0] ?? "";
    const args = [...words.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      (match) => match[1] ?? match[2] ?? match[3] ?? "",
    );
    const isReadLater = args.some((arg) => arg === "-" || arg.startsWith("@"));
    if (isReadLater) return;
    const { fields } = parseCommand(args, command, operation);
    if (operation) checkFields(operation, fields);
  });
});

test.each(Object.entries(operations))("every field of %s is a flag", (_, operation) => {
  const flags = fieldFlags(operation);
  const shape = "query" in operation ? Object.keys(operation.query.shape) : undefined;
  if (shape) expect(flags.map(({ field }) => field)).toEqual(shape);
  for (const { name, field } of flags) expect(name).toBe(field?.replaceAll("_", "-"));
});

test("every operation of people who run the place has a command", () => {
  const called = all.flatMap(({ command }) => command.operation ?? []);
  /** Called by commands with more than one operation, or by programs only. */
  const elsewhere = [
    ...[
      "replayDeadLetter",
      "replayDeadLetters",
      "discardDeadLetter",
      "startDeadRun",
      "getStats",
      "getHealth",
      "getDeployment",
      "getChain",
    ],
    ...["enqueueJobs", "enqueueFlow", "nudge", "getMetrics", "silenceOneAlarm"],
    ...[
      "claimJobs",
      "completeJob",
      "failJob",
      "releaseJob",
      "extendJob",
      "storeSteps",
      "startChildren",
      "findWaited",
      "extendJobs",
      "settleJobs",
    ],
    ...["registerWorker", "removeWorker"],
  ];
  const missing = Object.keys(operations).filter((id) => ![...called, ...elsewhere].includes(id as never));
  expect(missing).toEqual([]);
});

test("docs/cli.md is current: run `npm run docs`", async () => {
  expect(readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8")).toBe(await cliReference());
});

describe("the process", () => {
  test("prints its help and its version, and ends with 0", async () => {
    const { code, stdout } = await runCli(["--help"]);
    expect(code).toBe(0);
    for (const name of Object.keys(commandTable)) expect(stdout).toContain(`  ${name} `);
    expect(await runCli(["help", "jobs", "list"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("usage: sluice jobs list"),
    });
    expect(await runCli(["jobs", "--help"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("jobs wait"),
    });
    expect((await runCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    [["stauts"], 'there is no command "stauts": did you mean "sluice status"?'],
    [["jobs", "lst"], 'there is no command "jobs lst": did you mean "sluice jobs list"?'],
    [["jobs"], "sluice jobs needs a command: list, get, cancel, resolve, wait"],
    [["jobs", "list", "--statsu", "dead"], "unknown flag --statsu; did you mean --status?"],
    [["jobs", "list", "--status", "deda"], "did you mean dead?"],
    [["jobs", "list", "--limit", "many"], '--limit: "many" is not a number'],
    [["jobs", "list", "--limit", "0"], "--limit: "],
    [["jobs", "get"], "<id> is missing"],
    [["jobs", "get", "a", "b"], '"b" is one argument too many'],
    [["--json", "status"], "flags come after the command"],
    [["completion", "fish"], '"fish" is none of bash, zsh'],
    [["status"], "say where Sluice is"],
    [["status", "--url", "localhost:8787", "--key", "k"], "--url is not an http or https URL"],
    [["status", "--url", "http://127.0.0.1:8787"], "there is an address, but no key"],
    [["status", "--database"], "--database needs a connection string"],
    [["status", "--database", "postgresql://u:secret@host"], "names no database"],
    [["migrate", "--print", "--dry-run"], "use either --print or --dry-run, not both"],
  ])("%j is wrong usage: it ends with 2 and says %s", async (args, words) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain("secret");
  });

  test("without any argument it prints its help, and ends with 2", async () => {
    expect(await runCli([])).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("usage: sluice <command>"),
    });
  });

  test("starts as fast as Node can: the help loads no package", async () => {
    const env = { NODE_DEBUG: "esm" };
    const { stderr } = await runCli(["--help"], { env });
    expect(stderr).not.toMatch(/node_modules\/(zod|pg|hono|drizzle-orm)\//);
    const list = await runCli(["jobs", "list", "--help"], { env });
    expect(list.stderr).not.toMatch(/node_modules\/(pg|hono|drizzle-orm)\//);
  });
});
