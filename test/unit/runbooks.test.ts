// Every alarm has a runbook in docs/alarms.md.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { alarmNames } from "../../src/core/alarms/alarm.ts";
import { runbookLink } from "../../src/core/alarms/notice.ts";

const deployment = {
  name: "staging",
  publicUrl: undefined,
  runbookUrl: "https://git.example/docs/alarms.md",
};

test("every alarm's runbook is a URL of its own section", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/alarms.md"), "utf8");
  for (const alarm of alarmNames) {
    expect(runbookLink({ alarm }, deployment)).toBe(`https://git.example/docs/alarms.md#${alarm}`);
    expect(text).toContain(`\n## ${alarm}\n`);
  }
});

test("a deployment without a runbook URL links to none", () => {
  expect(runbookLink({ alarm: "dead_letters" }, { ...deployment, runbookUrl: undefined })).toBeNull();
});
