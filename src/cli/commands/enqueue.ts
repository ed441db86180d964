// sluice enqueue: one job. Every option of a job is a flag.

import type { Commands } from "../command-table.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { operationCommand, startWords, toCall } from "../operation-command.ts";

const { run: _, ...command } = operationCommand("enqueueJob", {
  arguments: ["type", "payload?"],
  details: `The payload is a JSON object, "@file", or "-" for the standard input. --tags and --after can be repeated. Without
--idempotency-key the command makes one of its own, so it never makes two jobs.

With --database the type's code is not known: its payload is not checked, it has 5 attempts unless --max-attempts says
otherwise, and only types that the database has seen are accepted.`,
  examples: [
    `enqueue send_email '{"to": "a@example.com"}'`,
    "enqueue report @report.json --queue reports --priority 9 --delay-seconds 60",
    `enqueue import '{"part": 3}' --partition-key customer-7 --tags import --tags night`,
    "enqueue sync - --idempotency-key sync:2026-11-17 --json < payload.json",
  ],
  show: () => {},
});

export const commands: Commands = {
  "": {
    ...command,
    async run(context) {
      const { api, out, fields } = context;
      const call = toCall("enqueueJob", {
        ...context,
        fields: { idempotency_key: crypto.randomUUID(), ...fields },
      });
      const answer = await api
        .call("enqueueJob", call)
        .catch(explainUnknownType(context.api.isOverSql, fields.type));
      if (out.isJson) return out.json(answer);
      const { outcome } = answer;
      const what = answer.deduplicated ? "the job was there already" : (outcome ?? "enqueued");
      const starts = answer.status === "pending" && !answer.deduplicated ? startWords(context) : "";
      out.line(
        out.isTerminal
          ? `${answer.job_id}  ${answer.type} in ${answer.queue}, ${answer.status}: ${what}${starts}`
          : answer.job_id,
      );
    },
  },
};

/** Over SQL the deployment's types are not known, so a misspelt one could not be told from a new one. */
function explainUnknownType(isOverSql: boolean, type: unknown) {
  return (error: CommandError): never => {
    if (!isOverSql || !/^Unknown job type/.test(error.message)) throw error;
    const cure = `check its name; if it is new, enqueue it over the Worker, or with: select sluice.enqueue('${type}')`;
    throw new CommandError(
      `the database has never seen a job of the type "${type}": ${cure}`,
      exitCodes.failed,
      {
        cause: error,
      },
    );
  };
}
