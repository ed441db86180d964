// sluice audit: what operators have done, newest first.
import type { Commands } from "../command-table.ts";
import { listCommand } from "../operation-command.ts";

export const commands: Commands = {
  "": listCommand("listAudit", {
    examples: ["audit", "audit --limit 100", "audit --all --json | jq -c 'select(.action == \"pause\")'"],
    rows: ({ entries }) => entries,
    columns: [
      ["AT", ({ at }) => at],
      ["ACTOR", ({ actor }) => actor],
      ["ACTION", ({ action }) => action],
      ["TARGET", ({ target }) => target],
      ["AFTER", ({ after }) => after],
    ],
    empty: "nobody has done anything yet",
  }),
};
