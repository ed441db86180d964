// sluice signals: send.
import type { Commands } from "../command-table.ts";
import { actionCommand } from "../operation-command.ts";

export const commands: Commands = {
  send: actionCommand("sendSignal", {
    arguments: ["key", "payload?"],
    examples: [`signals send approved order-7 '{"by": "ann"}'`],
    say: ({ name, key, deduplicated }) =>
      deduplicated ? `${name} ${key} was sent before; the first one counts` : `${name} ${key} is sent`,
  }),
};
