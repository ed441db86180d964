// sluice types: list, pause, resume.
import type { Commands } from "../command-table.ts";
import { actionCommand, listCommand } from "../operation-command.ts";

export const commands: Commands = {
  list: listCommand("listJobTypes", {
    details:
      "With --database these are the types that the database has seen. Their options are the defaults: the code is not known there.",
    examples: ["types list", "types list --json | jq '.job_types[].type'"],
    rows: (answer) => answer.job_types,
    columns: [
      ["TYPE", ({ type }) => type],
      ["QUEUE", ({ queue }) => queue],
      [
        "STATE",
        ({ paused, breaker }) => (paused ? "paused" : breaker.state === "open" ? "breaker open" : "running"),
      ],
      ["PENDING", ({ books }) => books.pending],
      ["PROCESSING", ({ books }) => books.leased],
      ["COMPLETED", ({ books }) => books.completed],
      ["FAILED", ({ books }) => books.failed],
      ["DEAD", ({ books }) => books.dead],
      ["ATTEMPTS", (type) => type.max_attempts],
      ["TIMEOUT", (type) => `${type.timeout_seconds} s`],
      ["LIMITS", ({ concurrency, rate }) => limitsOf(concurrency, rate)],
    ],
    empty: "this deployment has no job types",
  }),
  pause: actionCommand("pauseJobType", {
    details: "Running jobs go on. No new ones are started.",
    examples: ["types pause send_email"],
    say: ({ type }) => `${type} is paused`,
  }),
  resume: actionCommand("resumeJobType", {
    examples: ["types resume send_email"],
    say: ({ type }) => `${type} is running`,
  }),
};

function limitsOf(concurrency: number | null, rate: { limit: number; per_seconds: number } | null): string {
  const parts = [
    ...(concurrency === null ? [] : [`${concurrency} at once`]),
    ...(rate === null ? [] : [`${rate.limit} in ${rate.per_seconds} s`]),
  ];
  return parts.join(", ");
}
