// sluice doctor: checks a deployment by what it says about itself, and a database by its schema.
import type { CommandContext } from "../command.ts";
import type { Commands } from "../command-table.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { type Finding, inspectDeployment } from "../inspect-deployment.ts";
import { inspectSchema } from "../inspect-schema.ts";
import { plural } from "../output/words.ts";
import { findWhere } from "../where.ts";

export const commands: Commands = {
  "": {
    summary: "Check a deployment and its database",
    details: `Over the Worker: health, schema version, bindings, the crons seen, the limits in effect, alarm targets, the clock, sleep, and
what keeps Postgres from removing dead rows. With --database: the same as far as the database knows it, and the schema's files by their
checksums. Exits with 4 if something is wrong.`,
    examples: ["doctor", "doctor --database", "doctor --json | jq '.[] | select(.level == \"wrong\")'"],
    run: doctor,
  },
};

const marks = { ok: "ok", note: "note", wrong: "WRONG" } as const;

async function doctor(context: CommandContext): Promise<void> {
  const { out } = context;
  const findings = [...(await inspectSchemaFiles(context)), ...(await inspectDeployment(context.api))];
  if (out.isJson) out.json(findings);
  else
    out.table<Finding>(findings, [
      ["", ({ level }) => marks[level]],
      ["CHECK", ({ check }) => check],
      ["FOUND", ({ found }) => found],
    ]);
  const wrong = findings.filter(({ level }) => level === "wrong").length;
  if (wrong > 0) throw new CommandError(`${plural(wrong, "problem")} found`, exitCodes.found);
}

/** Only the database knows which files were applied to it. */
async function inspectSchemaFiles({ api, globals, env }: CommandContext): Promise<Finding[]> {
  const where = findWhere(globals, env);
  if (where.kind === "database") return inspectSchema(where.databaseUrl, env.SLUICE_SCHEMA);
  return [
    {
      check: "schema files",
      level: "note",
      found: `not seen over ${api.words}: sluice doctor --database compares them`,
    },
  ];
}
