// sluice alarms: list, test, silence, unsilence, history, deliveries.
import type { Commands } from "../command-table.ts";
import { CommandError } from "../exit.ts";
import { actionCommand, listCommand, operationCommand } from "../operation-command.ts";
import { ago } from "../output/words.ts";

export const commands: Commands = {
  list: listCommand("listAlarms", {
    summary: "List the alarms that have or had a bad round",
    details: "With --json also the rules, the silences and the state of the targets.",
    examples: ["alarms list", "alarms list --json | jq '.targets'"],
    rows: ({ alarms }) => alarms.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state)),
    columns: [
      ["ALARM", ({ alarm }) => alarm],
      ["STATE", ({ state }) => state],
      ["SEVERITY", ({ severity }) => severity],
      ["ABOUT", ({ queue, job_type }) => [queue, job_type].filter((name) => name !== null).join("/")],
      ["SINCE", ({ since }) => `${since} (${ago(since)})`],
      ["SUMMARY", ({ summary }) => summary],
    ],
    empty: "no alarm has had a bad round",
  }),
  test: operationCommand("sendTestNotice", {
    details:
      "Exits with 1 if a target did not take it. With --database the targets are those of SLUICE_ALARM_TARGETS in this environment.",
    examples: ["alarms test", "alarms test --target ops"],
    show({ targets }, out) {
      out.table(
        targets,
        [
          ["TARGET", ({ target }) => target],
          ["DELIVERED", ({ delivered }) => (delivered ? "yes" : "no")],
          ["STATUS", ({ status }) => status],
          ["MS", ({ ms }) => Math.round(ms)],
          ["ERROR", ({ error }) => error],
        ],
        "there are no targets: set SLUICE_ALARM_TARGETS",
      );
      const failed = targets.filter(({ delivered }) => !delivered).map(({ target }) => target);
      if (failed.length > 0) throw new CommandError(`not delivered: ${failed.join(", ")}`);
    },
  }),
  silence: actionCommand("silenceAlarm", {
    arguments: ["alarm"],
    examples: [
      "alarms silence queue_growing --until 2026-12-01T08:00:00Z",
      'alarms silence queue_growing --until 2026-12-01T08:00:00Z --reason "INC-482"',
    ],
    say: ({ alarm, until }) => `${alarm} sends no notices until ${until}`,
  }),
  unsilence: actionCommand("unsilenceAlarm", {
    examples: ["alarms unsilence queue_growing"],
    say: ({ alarm }) => `${alarm} sends notices again`,
  }),
  history: listCommand("listAlarmHistory", {
    examples: ["alarms history", "alarms history --limit 100"],
    rows: ({ events }) => events,
    columns: [
      ["AT", ({ at }) => `${at} (${ago(at)})`],
      ["ALARM", ({ alarm }) => alarm],
      ["EVENT", ({ event }) => event],
      ["ABOUT", ({ queue, job_type }) => [queue, job_type].filter((name) => name !== null).join("/")],
      ["BY", ({ actor }) => actor],
      ["WHY", ({ summary, reason }) => summary ?? reason],
    ],
    empty: "no alarm has fired or was silenced",
  }),
  deliveries: listCommand("listDeliveries", {
    examples: ["alarms deliveries"],
    rows: ({ deliveries }) => deliveries,
    columns: [
      ["AT", (delivery) => `${delivery.created_at} (${ago(delivery.created_at)})`],
      ["TARGET", ({ target }) => target],
      ["ALARM", ({ alarm }) => alarm],
      ["NOTICE", ({ type }) => type],
      ["STATE", ({ state }) => state],
      ["TRIES", ({ tries }) => tries],
      ["STATUS", ({ status }) => status],
      ["ERROR", ({ error }) => error],
    ],
    empty: "no notice was sent",
  }),
};

const order = ["firing", "pending", "ok"];
