// Cron expressions in words, as the dashboard shows schedules.
import { Cron } from "croner";
import { describe, expect, test } from "vitest";
import { cronInWords } from "../../src/dashboard/cron-words.ts";

describe("a cron expression in words", () => {
  test.each([
    ["* * * * *", "every minute"],
    ["*/5 * * * *", "every 5 minutes"],
    ["0 */5 * * * *", "every 5 minutes"],
    ["0 * * * *", "every hour"],
    ["45 * * * *", "at minute 45 of every hour"],
    ["0 */6 * * *", "every 6 hours"],
    ["15 */6 * * *", "every 6 hours, at minute 15"],
    ["30 2 * * *", "at 02:30 every day"],
    ["0 9,12,17 * * *", "at 09:00, 12:00 and 17:00 every day"],
    ["0,30 9 * * *", "at 09:00 and 09:30 every day"],
    ["30 9 * * 1-5", "at 09:30, Monday to Friday"],
    ["0 17 * * mon-fri", "at 17:00, Monday to Friday"],
    ["0 8 * * 1", "at 08:00 on Monday"],
    ["0 8 * * MON", "at 08:00 on Monday"],
    ["0 8 * * 7", "at 08:00 on Sunday"],
    ["0 8 * * 1,4", "at 08:00 on Monday and Thursday"],
    ["0 6 1 * *", "at 06:00 on day 1 of the month"],
    ["0 6 1,15 * *", "at 06:00 on days 1 and 15 of the month"],
    ["0 6 1-7 * *", "at 06:00 on days 1 to 7 of the month"],
    ["0 6 L * *", "at 06:00 on the last day of the month"],
    ["0 6 1 1,7 *", "at 06:00 on day 1 of the month in January and July"],
    ["0 6 * dec *", "at 06:00 in December"],
    ["*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:59, Monday to Friday"],
    ["0 * * * 6", "every hour on Saturday"],
  ])("%s is: %s", (cron, words) => {
    expect(() => new Cron(cron, { mode: "5-or-6-parts" })).not.toThrow();
    expect(cronInWords(cron)).toBe(words);
  });

  test.each([
    "30 9 13 * 5",
    "0 6 15W * *",
    "0 8 * * 1#2",
    "*/30 * * * * *",
    "1-9/2 * * * *",
    "0 6 * 13 *",
    "@daily",
    "",
  ])("that it does not know stays as it is: %s", (cron) => {
    expect(cronInWords(cron)).toBe(cron);
  });
});
