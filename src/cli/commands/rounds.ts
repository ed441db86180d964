// sluice rounds: what each round did and why it ended.
import type { Commands } from "../command-table.ts";
import { listCommand } from "../operation-command.ts";
import { ago } from "../output/words.ts";

export const commands: Commands = {
  "": listCommand("listRounds", {
    examples: ["rounds", "rounds --kind drain --limit 50"],
    rows: ({ rounds }) => rounds,
    columns: [
      ["ENDED", (round) => `${round.ended_at} (${ago(round.ended_at)})`],
      ["ROUND", ({ kind, queue }) => (queue === null ? kind : `${kind} ${queue}`)],
      ["MS", (round) => Date.parse(round.ended_at) - Date.parse(round.started_at)],
      ["CLAIMED", ({ claimed }) => claimed],
      ["COMPLETED", ({ completed }) => completed],
      ["FAILED", ({ failed }) => failed],
      ["WHY IT ENDED", ({ reason, message }) => message ?? reason],
    ],
    empty: "no round was recorded",
  }),
};
