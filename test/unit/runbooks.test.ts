import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { alarmNames } from "../../src/core/alarm.ts";
import { runbookOf } from "../../src/core/notice.ts";

test("every alarm's runbook link leads to a section of its own", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/alarms.md"), "utf8");
  for (const alarm of alarmNames) {
    expect(runbookOf(alarm)).toBe(`docs/alarms.md#${alarm}`);
    expect(text).toContain(`\n## ${alarm}\n`);
  }
});
