// Reads the arguments and flags of one command. A wrong one is an error that names it and the nearest right one.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Operation } from "../contract/operation.ts";
import { SluiceError } from "../core/errors.ts";
import { parseStrictJson, wordsOf } from "../core/strict-json.ts";
import type { Command, Flag, GlobalValues, Value } from "./command.ts";
import { bareName, contractFlags, fieldFlags, pathArguments } from "./contract-flags.ts";
import { usageError } from "./exit.ts";
import { nearestTo } from "./nearest.ts";

/** The flags of every command. */
export const globalFlags: readonly Flag[] = [
  { name: "url", kind: "text", help: "the Worker's address; default SLUICE_URL" },
  { name: "key", kind: "text", help: "the API key; default SLUICE_KEY" },
  {
    name: "database",
    kind: "text",
    help: "use the database instead of the Worker; without a URL: SLUICE_DATABASE_URL or DATABASE_URL",
  },
  { name: "json", kind: "boolean", help: "print JSON" },
  { name: "help", kind: "boolean", help: "print the help of the command" },
];

export interface Parsed {
  values: Record<string, Value>;
  fields: Record<string, Value>;
  globals: GlobalValues;
}

/** `--database` without a URL after it means the one of the environment. */
const databaseOfEnvironment = "";

export function parseCommand(args: readonly string[], command: Command, operation?: Operation): Parsed {
  const own = [...contractFlags(operation, command), ...(command.flags ?? [])];
  const { values, positionals } = parseFlags(args, [...own, ...globalFlags]);
  const { url, key, database, json, help } = values;
  const globals = { url, key, database, json, help } as Parsed["globals"];
  if (help) return { values: {}, fields: {}, globals };
  const given = [...own].flatMap((flag) => {
    const value = values[flag.name];
    return value === undefined ? [] : [{ flag, value: toValue(flag, value) }];
  });
  const fromFlags = given.filter(({ flag }) => flag.field !== undefined);
  const named = readArguments(positionals, command, operation);
  const fields = {
    ...command.sets,
    ...named.fields,
    ...Object.fromEntries(fromFlags.map(({ flag, value }) => [flag.field ?? "", value])),
  };
  const plain = given.filter(({ flag }) => flag.field === undefined);
  return {
    values: { ...named.values, ...Object.fromEntries(plain.map(({ flag, value }) => [flag.name, value])) },
    fields,
    globals,
  };
}

type Raw = string | boolean | (string | boolean)[];

function parseFlags(args: readonly string[], flags: readonly Flag[]) {
  const options = Object.fromEntries(
    flags.map(({ name, kind }) => [
      name,
      {
        type: kind === "boolean" ? ("boolean" as const) : ("string" as const),
        multiple: kind === "list" || kind === "ids",
        ...(name === "help" && { short: "h" }),
      },
    ]),
  );
  try {
    const parsed = parseArgs({ args: withDatabase(args), options, allowPositionals: true });
    return { values: parsed.values as Record<string, Raw | undefined>, positionals: parsed.positionals };
  } catch (error) {
    throw usageError(flagError(error as Error & { code?: string }, args, flags));
  }
}

function withDatabase(args: readonly string[]): string[] {
  return args.map((arg, index) =>
    arg === "--database" && !/^postgres(ql)?:/i.test(args[index + 1] ?? "")
      ? `--database=${databaseOfEnvironment}`
      : arg,
  );
}

function flagError(
  { code, message }: Error & { code?: string },
  args: readonly string[],
  flags: readonly Flag[],
) {
  if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") return message.split("\n")[0] ?? message;
  const names = flags.map(({ name }) => `--${name}`);
  const unknown = args
    .map((arg) => arg.replace(/=.*/, ""))
    .find((arg) => /^-./.test(arg) && arg !== "-h" && !names.includes(arg));
  const nearest = nearestTo(unknown ?? "", names);
  return `unknown flag ${unknown}${nearest ? `; did you mean ${nearest}?` : ""}`;
}

function toValue(flag: Flag, raw: Raw): Value {
  if (flag.kind === "boolean") return raw === true;
  if (flag.kind === "list") return raw;
  if (flag.kind === "ids") {
    const [only = "", ...more] = raw as string[];
    return more.length === 0 && /^\s*[[{@-]/.test(only) ? readJson(only, flag.name) : raw;
  }
  const text = String(raw);
  if (flag.kind === "number") return toNumber(flag, text);
  if (flag.kind === "json") return readJson(text, flag.name);
  if (flag.choices && !flag.choices.includes(text)) throw usageError(wrongChoice(flag, text));
  return text;
}

function toNumber({ name }: Flag, text: string): number {
  const number = Number(text);
  if (text.trim() === "" || Number.isNaN(number)) throw usageError(`--${name}: "${text}" is not a number`);
  return number;
}

function wrongChoice({ name, choices = [] }: Flag, text: string): string {
  const nearest = nearestTo(text, choices);
  return `--${name}: "${text}" is none of ${choices.join(", ")}${nearest ? `; did you mean ${nearest}?` : ""}`;
}

/** A JSON text, "@file", or "-" for the standard input. */
function readJson(text: string, name: string): Value {
  try {
    const source =
      text === "-"
        ? readFileSync(0, "utf8")
        : text.startsWith("@")
          ? readFileSync(text.slice(1), "utf8")
          : text;
    return parseStrictJson(source, name) as Value;
  } catch (error) {
    if (error instanceof SluiceError) throw usageError(wordsOf(error));
    throw usageError(`${name}: ${(error as Error).message}`);
  }
}

function readArguments(positionals: readonly string[], command: Command, operation: Operation | undefined) {
  const wanted = [...pathArguments(operation), ...(command.arguments ?? [])];
  const required = [
    ...pathArguments(operation),
    ...(command.arguments ?? []).filter((name) => !name.endsWith("?")),
  ];
  const missing = required[positionals.length];
  if (missing !== undefined) throw usageError(`<${missing}> is missing`);
  const surplus = positionals[wanted.length];
  if (surplus !== undefined) throw usageError(`"${surplus}" is one argument too many`);
  const byField = new Map(fieldFlags(operation).map((flag) => [flag.field ?? "", flag]));
  const values: Record<string, Value> = {};
  const fields: Record<string, Value> = {};
  for (const [index, text] of positionals.entries()) {
    const name = bareName(wanted[index] ?? "");
    const flag = index < pathArguments(operation).length ? undefined : byField.get(name);
    if (flag) fields[name] = toValue({ ...flag, name }, flag.kind === "list" ? [text] : text);
    else values[name] = text;
  }
  return { values, fields };
}
