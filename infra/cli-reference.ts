// Writes docs/cli.md, the reference of the command line, from the table of commands: `npm run docs`. A test checks that the
// file is current.
import { writeFileSync } from "node:fs";
import type { Command, Flag } from "../src/cli/command.ts";
import { commandTable, type TableEntry } from "../src/cli/command-table.ts";
import { contractFlags, pathArguments } from "../src/cli/contract-flags.ts";
import { describeFlag, summaryOf } from "../src/cli/help.ts";
import { globalFlags } from "../src/cli/parse.ts";
import { operationOf } from "../src/cli/run-command.ts";

const introduction = `# Command line

This page is generated from the table of commands (\`npm run docs\`). \`npx sluice --help\` shows the same. In a checkout of this
repository it is \`npm run -s sluice -- <command>\`.

\`\`\`sh
export SLUICE_URL=https://sluice.example.workers.dev SLUICE_KEY=sk_…
npx sluice status --watch
npx sluice enqueue send_email '{"to": "a@example.com"}'
npx sluice dead replay --type send_email --rate 100/m
\`\`\`

## Where Sluice is

The first of these that is there counts. If it is not the first or the second, the command says on the standard error what it
uses.

1. \`--database [URL]\`: the database, without the Worker ([below](#when-the-worker-is-down)).
2. \`--url\` and \`--key\`, or \`SLUICE_URL\` and \`SLUICE_KEY\`: the Worker. Other users of the machine can see flags in the list of
   processes, so keep keys in the environment.
3. \`.sluice/dev.json\` in this directory or above: a local stack (\`npm run dev\`) that runs.

## Output and exit codes

- **On a terminal** a list is an aligned table with a header. Long lines are cut. \`NO_COLOR\` turns bold text off.
- **In a pipe** a list has one line for each entry, with tabs between the columns, no header, and nothing cut.
- **\`--json\`** prints the answer of the API, as [api.md](api.md) describes it. With \`--all\`, \`tail\` and \`status --watch\` it is one line of
  JSON for each entry.
- Control characters in texts of jobs are shown as escapes such as \`\\n\` and \`\\x1b\`, except in JSON.
- Notes and errors go to the standard error.

| exit code | meaning |
| --- | --- |
| 0 | Done. \`status --watch\` and \`tail\` end with it at Ctrl-C. |
| 1 | The request was refused, or failed: an unknown id, a wrong key, a job that \`jobs wait\` saw die. |
| 2 | Wrong usage: an unknown command or flag, a value that the API does not take. Nothing was sent, or nothing was changed. |
| 3 | The Worker or the database is out of reach, or the database cannot work now. |
| 4 | \`check\` or \`doctor\` found something. |

## When the Worker is down

With \`--database\` every command works over plain SQL: the API itself runs inside the command. The connection string comes behind the
flag, or from \`SLUICE_DATABASE_URL\` or \`DATABASE_URL\`, and \`SLUICE_SCHEMA\` names the schema. The role needs the rights of the
[Worker's role](operations.md#a-role-for-the-worker). What differs:

- Whoever has the connection string may do everything. The audit log names the caller \`sluice cli\` with the database role.
- Nothing is nudged. Jobs start with the next cron, once the Worker is back.
- The code of the deployment is not known. \`enqueue\` accepts types that the database has seen, and does not check payloads against their
  schemas. \`types list\` shows default options.
- The Worker's settings are not known. Alarm targets and rules are those of \`SLUICE_ALARM_TARGETS\` and \`SLUICE_ALARM_RULES\` in this
  environment, and \`doctor\` says nothing about bindings. It compares the schema's files with this release instead.

## Completion

\`\`\`sh
npx sluice completion bash > ~/.local/share/bash-completion/completions/sluice
\`\`\`

For zsh, put the output of \`npx sluice completion zsh\` into a file, and source it in \`~/.zshrc\`.

## Commands
`;

export async function cliReference(): Promise<string> {
  const sections: string[] = [];
  for (const [group, entry] of Object.entries<TableEntry>(commandTable)) {
    const { commands } = await entry.load();
    sections.push(`### ${group}\n\n${entry.summary}.\n`);
    for (const [name, command] of Object.entries(commands))
      sections.push(describe(`${group} ${name}`.trim(), command));
  }
  return `${introduction}
Every command has these flags:

${tableOf(globalFlags)}
${sections.join("\n")}`;
}

function describe(name: string, command: Command): string {
  const operation = operationOf(command);
  const words = [...pathArguments(operation), ...(command.arguments ?? [])].map((argument) =>
    argument.endsWith("?") ? `[${argument.slice(0, -1)}]` : `<${argument}>`,
  );
  const flags = [...contractFlags(operation, command), ...(command.flags ?? [])];
  const parts = [
    `**\`sluice ${[name, ...words].join(" ")}\`**: ${summaryOf(command, operation)}.`,
    command.details ?? "",
    flags.length > 0 ? tableOf(flags) : "",
    `\`\`\`sh\n${command.examples.map((example) => `sluice ${example}`).join("\n")}\n\`\`\``,
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function tableOf(flags: readonly Flag[]): string {
  const rows = flags.map((flag) => {
    const [label, text] = describeFlag(flag);
    return `| \`${label.replaceAll("|", "\\|")}\` | ${text.replaceAll("|", "\\|")} |`;
  });
  return ["| flag | |", "| --- | --- |", ...rows].join("\n");
}

if (import.meta.main) writeFileSync(new URL("../docs/cli.md", import.meta.url), await cliReference());
