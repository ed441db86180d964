// The texts of --help, made from the table of commands and from the contract.
import type { Operation } from "../contract/operation.ts";
import type { Command, Flag } from "./command.ts";
import { type Commands, commandTable } from "./command-table.ts";

const general = `Where Sluice is:
  SLUICE_URL, SLUICE_KEY    the Worker's address and an API key; or --url and --key. Without them, a local stack
                            (sluice dev) is found by its .sluice/dev.json
  --database [URL]          use the database instead, when the Worker is down; without a URL, that of SLUICE_DATABASE_URL
                            or DATABASE_URL. SLUICE_SCHEMA names the schema (default: sluice)

Output: tables on a terminal, tab-separated lines without a header in a pipe, JSON with --json.
Exit codes: 0 done, 1 failed or refused, 2 wrong usage, 3 out of reach, 4 \`check\` or \`doctor\` found something.`;

export function generalHelp(): string {
  const rows = Object.entries(commandTable).map(([name, { summary }]) => [name, summary] as const);
  return `usage: sluice <command> [arguments] [flags]

${list(rows)}

${general}

sluice <command> --help shows the flags and examples of a command.`;
}

export function groupHelp(
  name: string,
  commands: Commands,
  operationOf: (command: Command) => Operation | undefined,
) {
  const rows = Object.entries(commands).map(
    ([subcommand, command]) => [`${name} ${subcommand}`, summaryOf(command, operationOf(command))] as const,
  );
  return `usage: sluice ${name} <command> [flags]

${list(rows)}

sluice ${name} <command> --help shows the flags and examples of a command.`;
}

export function summaryOf(command: Command, operation: Operation | undefined): string {
  return command.summary ?? operation?.summary ?? "";
}

export interface CommandHelp {
  /** Such as "jobs list". */
  name: string;
  command: Command;
  operation: Operation | undefined;
  /** The names of its arguments. One that ends with "?" may be left out. */
  argumentNames: readonly string[];
  flags: readonly Flag[];
  globalFlags: readonly Flag[];
}

export function commandHelp({
  name,
  command,
  operation,
  argumentNames,
  flags,
  globalFlags,
}: CommandHelp): string {
  const parts = [
    usageLine(name, argumentNames, flags.length > 0),
    `${summaryOf(command, operation)}.`,
    command.details ?? "",
    list(flags.map(describeFlag)),
    `Examples:\n${command.examples.map((example) => `  sluice ${example}`).join("\n")}`,
    command.needsApi === false ? "" : `Flags of every command:\n${list(globalFlags.map(describeFlag))}`,
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

function usageLine(name: string, argumentNames: readonly string[], hasFlags: boolean): string {
  const words = argumentNames.map((argument) =>
    argument.endsWith("?") ? `[${argument.slice(0, -1)}]` : `<${argument}>`,
  );
  return ["usage: sluice", name, ...words, ...(hasFlags ? ["[flags]"] : [])].join(" ");
}

const valueWords = { number: " N", text: " TEXT", list: " TEXT…", json: " JSON", ids: " ID…", boolean: "" };

export function describeFlag({ name, kind, choices, help = "" }: Flag): readonly [string, string] {
  const value = choices && choices.length <= 4 ? ` ${choices.join("|")}` : valueWords[kind];
  const more = choices && choices.length > 4 ? `one of ${choices.join(", ")}` : "";
  return [`--${name}${value}`, [help, more].filter((text) => text !== "").join("; ")];
}

const maxLabel = 32;

/** Two columns. A long label gets a line of its own. */
function list(rows: readonly (readonly [string, string])[]): string {
  const width = Math.min(Math.max(...rows.map(([label]) => label.length), 0), maxLabel);
  return rows
    .map(([label, text]) =>
      (label.length > width
        ? `  ${label}\n  ${" ".repeat(width)}  ${text}`
        : `  ${label.padEnd(width)}  ${text}`
      ).trimEnd(),
    )
    .join("\n");
}
