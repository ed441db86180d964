// Runs one command: its subcommand, its flags, the way to Sluice, and what it prints.
import type { Operation } from "../contract/operation.ts";
import { operations } from "../contract/operations.ts";
import type { Api } from "./api.ts";
import type { Command, CommandContext } from "./command.ts";
import type { Commands } from "./command-table.ts";
import { checkFields, contractFlags, pathArguments } from "./contract-flags.ts";
import { usageError } from "./exit.ts";
import { commandHelp, groupHelp } from "./help.ts";
import { nearestTo } from "./nearest.ts";
import { openApi } from "./open-api.ts";
import { createOutput, type Output } from "./output/output.ts";
import { globalFlags, type Parsed, parseCommand } from "./parse.ts";
import { findWhere } from "./where.ts";

export async function runCommand(group: string, commands: Commands, args: readonly string[]): Promise<void> {
  const found = findCommand(group, commands, args);
  if (typeof found === "string") return void process.stdout.write(`${found}\n`);
  const { name, command, rest } = found;
  const operation = operationOf(command);
  const parsed = parseCommand(rest, command, operation);
  if (parsed.globals.help) return void process.stdout.write(`${helpOf(name, command)}\n`);
  if (operation) checkFields(operation, parsed.fields);
  const out = createOutput(process, { isJson: parsed.globals.json ?? false });
  const api = command.needsApi === false ? noApi : await connect(parsed, out);
  try {
    await command.run(toContext(parsed, api, out));
  } finally {
    await api.close();
  }
}

export function operationOf(command: Command): Operation | undefined {
  return command.operation && operations[command.operation];
}

export function helpOf(name: string, command: Command): string {
  const operation = operationOf(command);
  const argumentNames = [...pathArguments(operation), ...(command.arguments ?? [])];
  const flags = [...contractFlags(operation, command), ...(command.flags ?? [])];
  return commandHelp({ name, command, operation, argumentNames, flags, globalFlags });
}

/** Returns a help text if that was asked for. */
function findCommand(group: string, commands: Commands, [first = "", ...others]: readonly string[]) {
  const only = commands[""];
  if (only) return { name: group, command: only, rest: first === "" ? [] : [first, ...others] };
  if (["--help", "-h", "help"].includes(first)) return groupHelp(group, commands, operationOf);
  const names = Object.keys(commands);
  const command = names.includes(first) ? commands[first] : undefined;
  if (command) return { name: `${group} ${first}`, command, rest: others };
  const nearest = nearestTo(first, names);
  const cure = nearest ? `did you mean "sluice ${group} ${nearest}"?` : `there are: ${names.join(", ")}`;
  throw usageError(
    first === "" || first.startsWith("-")
      ? `sluice ${group} needs a command: ${names.join(", ")}`
      : `there is no command "${group} ${first}": ${cure}`,
  );
}

async function connect({ globals }: Parsed, out: Output): Promise<Api> {
  const where = findWhere(globals, process.env);
  if (where.kind === "worker" && where.source.endsWith("dev.json"))
    out.note(`using the local stack at ${where.url} (${where.source})`);
  const api = await openApi(where, process.env);
  if (api.isOverSql) out.note(`using ${api.words} (${where.source})`);
  return api;
}

const noApi: Api = {
  call: () => Promise.reject(new Error("this command calls no operation")),
  words: "",
  isOverSql: false,
  close: async () => {},
};

function toContext({ values, fields, globals }: Parsed, api: Api, out: Output): CommandContext {
  const stop = new AbortController();
  return {
    ...{ api, out, env: process.env, fields, globals },
    values,
    get stopped() {
      // The first signal ends the command, the second one ends the process at once.
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
      return stop.signal;
    },
  };
}
