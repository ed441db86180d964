// sluice keys: list, create, revoke.
import type { Commands } from "../command-table.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";

export const commands: Commands = {
  list: listCommand("listKeys", {
    examples: ["keys list"],
    rows: ({ keys }) => keys,
    columns: [
      ["ID", ({ id }) => id],
      ["NAME", ({ name }) => name],
      ["ROLE", ({ role }) => role],
      ["TYPES", (key) => key.job_types?.join(", ") ?? "all"],
      ["PER SECOND", (key) => key.rate_limit_per_second],
      ["CREATED", (key) => key.created_at],
      ["LAST USED", (key) => key.last_used_at],
      ["REVOKED", (key) => key.revoked_at],
    ],
    empty: "there are no keys beside the admin key of the settings",
  }),
  create: operationCommand("addKey", {
    arguments: ["name"],
    details: "The key is printed once. Sluice stores only its hash.",
    examples: [
      "keys create checkout --role producer --job-types send_email --job-types invoice",
      "keys create ci --role viewer",
    ],
    show(key, out) {
      out.line(key.key);
      out.note(
        `the key ${key.name} (${key.id}) has the role ${key.role}; this is the only time that it is shown`,
      );
    },
  }),
  revoke: actionCommand("revokeKey", {
    details: "It stops working within 10 seconds.",
    examples: ["keys revoke 0199a1b2-…"],
    say: ({ id, name }) => `the key ${name} (${id}) is revoked`,
  }),
};
