#!/usr/bin/env node
// The command line: `npx sluice <command>`. It finds the command, reads its flags, opens the way to Sluice, and turns errors
// into one sentence and an exit code.
import { commandTable, type TableEntry } from "./command-table.ts";
import { CommandError, exitCodes, usageError } from "./exit.ts";
import { generalHelp } from "./help.ts";
import { nearestTo } from "./nearest.ts";

// `sluice jobs list --all | head` closes the pipe early. That is no error.
process.stdout.on("error", (error: { code?: string }) => {
  if (error.code === "EPIPE") process.exit(process.exitCode ?? exitCodes.ok);
  throw error;
});

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof CommandError)) throw error;
  process.stderr.write(`sluice: ${error.message}\n`);
  process.exitCode = error.exitCode;
}

async function main([name = "", ...args]: readonly string[]): Promise<void> {
  if (["", "help", "--help", "-h"].includes(name)) {
    const [topic] = args;
    if (name === "help" && topic !== undefined) return main([...args, "--help"]);
    process.stdout.write(`${generalHelp()}\n`);
    if (name === "") process.exitCode = exitCodes.usage;
    return;
  }
  if (name === "--version") {
    const { version } = await import("../contract/version.ts");
    process.stdout.write(`${version}\n`);
    return;
  }
  const entry: TableEntry | undefined = Object.hasOwn(commandTable, name)
    ? commandTable[name as keyof typeof commandTable]
    : undefined;
  if (!entry) throw unknownCommand(name);
  const [{ runCommand }, { commands }] = await Promise.all([import("./run-command.ts"), entry.load()]);
  await runCommand(name, commands, args);
}

function unknownCommand(name: string): CommandError {
  const nearest = nearestTo(name, Object.keys(commandTable));
  const cure = nearest ? `did you mean "sluice ${nearest}"?` : "see sluice --help";
  return usageError(
    name.startsWith("-") ? `flags come after the command: ${cure}` : `there is no command "${name}": ${cure}`,
  );
}
