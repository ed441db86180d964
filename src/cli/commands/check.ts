// sluice check: for CI and scripts. It finds dead letters and firing alarms.
import type { Commands } from "../command-table.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { plural } from "../output/words.ts";

export const commands: Commands = {
  "": {
    summary: "Exit with 4 if there are dead letters or firing alarms",
    details: "Prints one line for each type with dead letters and for each firing alarm.",
    examples: ["check", "check --json", "check || echo 'look at the queue'"],
    async run({ api, out }) {
      const [stats, { alarms }] = await Promise.all([api.call("getStats"), api.call("listAlarms")]);
      const firing = alarms.filter(({ state }) => state === "firing");
      const dead = stats.books.filter(({ books }) => books.dead > 0);
      const total = dead.reduce((sum, { books }) => sum + books.dead, 0);
      if (out.isJson)
        out.json({
          dead_letters: total,
          dead: dead.map(({ queue, type, books }) => ({ queue, type, dead: books.dead })),
          firing,
        });
      else {
        for (const { queue, type, books } of dead)
          out.line(`${plural(books.dead, "dead letter")} of ${type} in ${queue}`);
        for (const { alarm, summary } of firing) out.line(`${alarm} fires: ${summary}`);
        if (total + firing.length === 0) out.line("no dead letters, no firing alarms");
      }
      if (total + firing.length > 0)
        throw new CommandError(
          `${plural(total, "dead letter")}, ${plural(firing.length, "firing alarm")}`,
          exitCodes.found,
        );
    },
  },
};
