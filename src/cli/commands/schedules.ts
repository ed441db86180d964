// sluice schedules: list, show, put, pause, resume, run, delete.
import type { Commands } from "../command-table.ts";
import { actionCommand, listCommand, operationCommand, startWords } from "../operation-command.ts";

export const commands: Commands = {
  list: listCommand("listSchedules", {
    examples: ["schedules list", "schedules list --all --json"],
    rows: ({ schedules }) => schedules,
    columns: [
      ["NAME", ({ name }) => name],
      ["CRON", ({ cron }) => cron],
      ["ZONE", (schedule) => schedule.time_zone],
      ["TYPE", ({ type }) => type],
      ["STATE", ({ paused }) => (paused ? "paused" : "running")],
      ["NEXT", (schedule) => schedule.next_slots[0]],
      ["LAST", (schedule) => schedule.last_slot],
      ["SOURCE", ({ source }) => source],
    ],
    empty: "there are no schedules: sluice schedules put makes one",
  }),
  show: operationCommand("getSchedule", {
    examples: ["schedules show nightly"],
    show: (schedule, out) => out.fields(schedule),
  }),
  put: actionCommand("putSchedule", {
    examples: [
      `schedules put nightly --cron "0 2 * * *" --time-zone Europe/Berlin --type report`,
      `schedules put ping --cron "*/30 * * * * *" --type ping --payload '{"deep": true}' --overlap skip`,
    ],
    say: ({ name, next_slots: [next] }) => `${name} runs next at ${next ?? "no time: it is paused"}`,
  }),
  pause: actionCommand("pauseSchedule", {
    examples: ["schedules pause nightly"],
    say: ({ name }) => `${name} is paused`,
  }),
  resume: actionCommand("resumeSchedule", {
    examples: ["schedules resume nightly"],
    say: ({ name, next_slots: [next] }) =>
      `${name} is running; its next slot is ${next ?? "not planned yet"}`,
  }),
  run: actionCommand("runSchedule", {
    examples: ["schedules run nightly"],
    say: ({ name, job_id }, context) => `${name} has made the job ${job_id}${startWords(context)}`,
  }),
  delete: actionCommand("deleteSchedule", {
    examples: ["schedules delete nightly"],
    say: ({ name }) => `${name} is deleted`,
  }),
};
