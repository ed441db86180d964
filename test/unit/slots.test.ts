// The times of schedules: expressions, zones, daylight saving time, and what is planned.
import { describe, expect, test } from "vitest";
import { faultOfTimes, type MissedRule, nextSlots, planSlots } from "../../src/core/policy/slots.ts";

const utc = (text: string) => Date.parse(`${text}Z`);
const next = (cron: string, timeZone: string, after: string, count: number) =>
  nextSlots({ cron, timeZone }, { afterMs: utc(after), count }).map((ms) =>
    new Date(ms).toISOString().slice(0, 16),
  );

describe("daylight saving time", () => {
  test("a time in the gap comes right after it: Berlin in spring", () => {
    expect(next("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00", 3)).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:00", // 03:00 in Berlin
      "2026-03-30T00:30",
    ]);
  });

  test("a fixed time that comes twice counts once, the first time: Berlin and New York in autumn", () => {
    expect(next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", 2)).toEqual([
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ]);
    expect(next("30 1 * * *", "America/New_York", "2026-10-31T12:00", 2)).toEqual([
      "2026-11-01T05:30",
      "2026-11-02T06:30",
    ]);
  });

  test("what repeats within the hour follows real time through the overlap", () => {
    expect(next("*/30 1-3 * * *", "Europe/Berlin", "2026-10-24T20:00", 9)).toEqual([
      ...["2026-10-24T23:00", "2026-10-24T23:30", "2026-10-25T00:00", "2026-10-25T00:30"],
      ...["2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00", "2026-10-25T02:30"],
      "2026-10-26T00:00",
    ]);
  });

  test("a gap at midnight does not skip the day: Santiago", () => {
    expect(next("0 0 * * *", "America/Santiago", "2026-09-04T12:00", 3)).toEqual([
      "2026-09-05T04:00",
      "2026-09-06T04:00", // 01:00 in Santiago
      "2026-09-07T03:00",
    ]);
  });

  test("neither does a gap of half an hour: Lord Howe", () => {
    expect(next("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T00:00", 3)).toEqual([
      "2026-10-02T15:45",
      "2026-10-03T15:30", // 02:30 on Lord Howe
      "2026-10-04T15:15",
    ]);
  });
});

describe("what is refused", () => {
  const good = { cron: "0 9 * * mon-fri", timeZone: "Europe/Berlin" };
  test.each(["* * * * *", "*/5 * * * * *", "0 0 L * *", "0 0 29 2 *", good.cron])("%s is good", (cron) => {
    expect(faultOfTimes({ ...good, cron })).toBeNull();
  });

  test.each([
    "",
    "* * *",
    "* * * * * * *",
    "61 * * * *",
    "0 0 31 2 *",
    "@daily",
    "0 9 * * someday",
    "-1 * * * *",
  ])('the expression "%s"', (cron) => expect(faultOfTimes({ ...good, cron })?.field).toBe("cron"));

  test.each(["", "Nowhere/City", "+02:00", "Europe/Berlin "])('the zone "%s"', (timeZone) =>
    expect(faultOfTimes({ ...good, timeZone })?.field).toBe("time_zone"),
  );
});

describe("a plan", () => {
  const nowMs = utc("2026-11-17T12:00:30");
  const plan = (
    cron: string,
    {
      missed = "last",
      fromMs = nowMs,
      maxMissed = 100,
    }: { missed?: MissedRule; fromMs?: number; maxMissed?: number } = {},
  ) => planSlots({ cron, timeZone: "UTC", missed, fromMs, nowMs }, { maxMissed });
  const minute = 60_000;

  test("has ten slots, and is made again when half of them have passed", () => {
    const { slotsMs, refillMs } = plan("0 2 * * *");
    expect(slotsMs).toHaveLength(10);
    expect(slotsMs[0]).toBe(utc("2026-11-18T02:00"));
    expect(refillMs).toBe(slotsMs[5]);
  });

  test("of an expression with seconds covers some minutes", () => {
    const { slotsMs, refillMs } = plan("*/2 * * * * *");
    expect(slotsMs.at(-1)).toBe(nowMs + 6 * minute);
    expect(refillMs - nowMs).toBeGreaterThan(2 * minute); // the time between two rounds
  });

  test("goes on where the last one ended", () => {
    expect(plan("0 2 * * *", { fromMs: utc("2026-11-20T02:00") }).slotsMs[0]).toBe(utc("2026-11-21T02:00"));
  });

  test("after an outage has the missed slots that the rule wants, and all that are not late", () => {
    const fromMs = nowMs - 86_400_000;
    const late = (missed: MissedRule) =>
      plan("* * * * *", { missed, fromMs }).slotsMs.filter((ms) => ms <= nowMs);
    expect(late("skip")).toEqual([utc("2026-11-17T12:00")]);
    expect(late("last")).toEqual([utc("2026-11-17T11:59"), utc("2026-11-17T12:00")]);
  });

  test("by `all` leaves out none of the missed slots: plans of a bounded size follow each other", () => {
    const slots: number[] = [];
    let fromMs = nowMs - 86_400_000;
    for (;;) {
      const { slotsMs, refillMs } = plan("* * * * *", { missed: "all", fromMs });
      expect(slotsMs.length).toBeLessThanOrEqual(111);
      slots.push(...slotsMs);
      fromMs = slotsMs.at(-1) ?? 0;
      if (refillMs > nowMs) break;
    }
    expect(slots.filter((ms) => ms <= nowMs)).toEqual(
      Array.from({ length: 1440 }, (_, n) => utc("2026-11-16T12:01") + n * minute),
    );
  });

  test("ends after the missed slots if these are exactly as many as it may have", () => {
    const options = { missed: "all", fromMs: nowMs - 5.5 * minute } as const; // 11:56 to 11:59 are late
    const { slotsMs, refillMs } = plan("* * * * *", { ...options, maxMissed: 4 });
    expect(slotsMs).toHaveLength(4);
    expect(plan("* * * * *", { ...options, maxMissed: 4, fromMs: slotsMs.at(-1) ?? 0 }).slotsMs[0]).toBe(
      utc("2026-11-17T12:00"),
    );
    expect(refillMs).toBe(nowMs);
    expect(plan("* * * * *", { ...options, maxMissed: 5 }).refillMs).toBeGreaterThan(nowMs);
  });

  test("does not bring back what was planned before", () => {
    const fromMs = utc("2026-11-17T11:59");
    expect(plan("* * * * *", { missed: "all", fromMs }).slotsMs[0]).toBe(utc("2026-11-17T12:00"));
  });

  test("looks far back for a rare slot", () => {
    const fromMs = utc("2026-01-01T00:00:01");
    expect(plan("0 0 1 2 *", { fromMs }).slotsMs[0]).toBe(utc("2026-02-01T00:00"));
    expect(plan("0 0 1 12 *", { fromMs }).slotsMs[0]).toBe(utc("2026-12-01T00:00"));
  });
});
