// The dashboard's numbers, bars, charts and searches.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { History } from "../../src/core/history.ts";
import { latestRate, ratesOf, seriesOf, timesOf } from "../../src/dashboard/history.ts";
import { Bar } from "../../src/dashboard/parts/bar.tsx";
import { Chart, roundTop } from "../../src/dashboard/parts/chart.tsx";
import { decodeFlash, encodeFlash } from "../../src/dashboard/parts/flash.tsx";
import { count, counted, duration, wholeSeconds } from "../../src/dashboard/parts/numbers.ts";
import { formatSearch, parseSearch } from "../../src/dashboard/search.ts";

describe("numbers", () => {
  test.each([
    [0, "0 ms"],
    [212, "212 ms"],
    [1900, "1.9 s"],
    [4000, "4 s"],
    [12_400, "12 s"],
    [113_000, "1 min 53 s"],
    [720_000, "12 min"],
    [5_220_000, "1 h 27 min"],
    [273_600_000, "3 d 4 h"],
  ])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));

  test("have thousands separators, and one is not many", () => {
    expect([count(48_219_407), counted(1, "job"), counted(2, "job")]).toEqual([
      "48,219,407",
      "1 job",
      "2 jobs",
    ]);
  });

  test("a time is never longer than what it says, and misses less than a tenth of it", () => {
    const sizes: Record<string, number> = { d: 86_400, h: 3600, min: 60, s: 1 };
    fc.assert(
      fc.property(fc.nat(10_000_000), (seconds) => {
        const parts = wholeSeconds(seconds).split(" ");
        const said = parts.reduce(
          (sum, part, index) => sum + (index % 2 ? 0 : Number(part) * (sizes[parts[index + 1] ?? ""] ?? 0)),
          0,
        );
        return said <= seconds && seconds - said <= seconds / 10;
      }),
    );
  });
});

test("the top of a chart is a round number above every value, at most 2.5 times as high", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000_000 }), (value) => {
      const top = roundTop(value);
      return top >= value && top <= Math.max(2, value * 2.5) && top % 2 === 0;
    }),
  );
});

test("the segments of a bar fill it, and one job of a million is seen", async () => {
  const segments = [
    { shape: "pending", word: "due", value: 1_000_000 },
    { shape: "dead", word: "dead", value: 1 },
    { shape: "later", word: "later", value: 0 },
  ] as const;
  const text = String(await Bar({ name: "default", segments }));
  const widths = [...text.matchAll(/width="([\d.]+)%"/g)].map(([, width]) => Number(width));
  expect(widths).toEqual([98.4, 1.6]);
  expect(text).toContain("default: 1,000,000 due, 1 dead, 0 later");
});

test("an empty bar has no segments", async () => {
  const text = String(await Bar({ name: "x", segments: [{ shape: "dead", word: "dead", value: 0 }] }));
  expect(text).not.toContain("<rect");
  expect(text).not.toContain("NaN");
});

describe("history", () => {
  const starts = ["14:30", "14:31"].map((time) => new Date(`2026-11-16T${time}:00Z`));
  const none = [null, null];
  const empty = { enqueued: none, failed: none, retried: none, died: none, due: none };
  const history: History = {
    ...{ range: "30m", minutes: 1, starts, recordedSince: new Date(0), gaps: [], marks: [] },
    queues: [
      { queue: "a", ...empty, completed: [null, 2] },
      { queue: "b", ...empty, completed: [3, 4] },
      { queue: "sluice", ...empty, completed: [9, 9] },
    ],
  };

  test("adds up the users' queues, and what was not recorded is not zero", () => {
    expect(seriesOf(history).completed).toEqual([3, 6]);
    expect(seriesOf(history).due).toEqual([null, null]);
    expect(seriesOf(history, "a").completed).toEqual([null, 2]);
  });

  test("has no rate of a bucket that has not ended", () => {
    expect(ratesOf([6, null, 9], { ...history, minutes: 3 })).toEqual([2, null, null]);
  });

  test("is drawn as lines with gaps where nothing was recorded, with marks and shades at their times", async () => {
    const times = [0, 1, 2, 3, 4].map((minute) => new Date(minute * 60_000));
    const at = (seconds: number) => new Date(seconds * 1000);
    const text = String(
      await Chart({
        ...{ id: "c", title: "Waiting", now: "", times, describe: (index) => `bucket ${index}` },
        series: [{ shape: "pending", values: [10, null, 5, 10] }],
        marks: [{ at: at(60) }, { at: at(600) }],
        gaps: [{ from: at(120), to: at(180) }],
      }),
    );
    expect([...text.matchAll(/<path class="k-pending" d="([^"]+)"/g)].map(([, d]) => d)).toEqual([
      "M0 0L12.5 0L25 0",
      "M50 50L62.5 50L87.5 0L100 0",
    ]);
    expect([...text.matchAll(/class="mark" x1="([^"]+)"/g)].map(([, x]) => x)).toEqual(["25%", "100%"]);
    expect(text).toMatch(/class="k-later" opacity=".12" x="50%" y="18" width="25%"/);
    expect(text.match(/class="hit"/g)).toHaveLength(4);
  });

  test("ends with the end of the last bucket, and its rate is of the last one that has ended", () => {
    expect(timesOf(history).at(-1)).toEqual(new Date("2026-11-16T14:32:00Z"));
    expect(latestRate([6, 100], { ...history, minutes: 3 })).toBe(2);
  });
});

describe("the search line", () => {
  const now = new Date("2026-11-18T12:00:00Z");

  test("knows times before now and times of the calendar", () => {
    const timesOf = (q: string) => parseSearch(new URLSearchParams({ q }), now).filter;
    expect(timesOf("since:2h until:30m")).toMatchObject({
      since: new Date("2026-11-18T10:00:00Z"),
      until: new Date("2026-11-18T11:30:00Z"),
    });
    expect(timesOf("since:2026-11-17T08:00:00").since).toEqual(new Date("2026-11-17T08:00:00Z"));
    expect(timesOf("since:2026-11-17").since).toEqual(new Date("2026-11-17T00:00:00Z"));
  });

  test.each(['key:"two words"', 'key:"a \\"b\\""', "key:plain fair:x"])("keeps %s", (q) => {
    expect(formatSearch(parseSearch(new URLSearchParams({ q }), now))).toBe(q);
  });

  test("is written as it was read", () => {
    const search = parseSearch(new URLSearchParams({ q: "status:dead type:a  tag:x:y queue:q" }), now);
    expect(search.faults).toEqual([]);
    expect(formatSearch(search)).toBe("type:a status:dead queue:q tag:x:y");
  });

  test("takes parameters too, and its own words count before them", () => {
    const search = parseSearch(new URLSearchParams({ q: "type:b", type: "a", tag: "t" }), now);
    expect(search.filter).toMatchObject({ types: ["b"], tag: "t" });
  });

  test.each(["nonsense", "colour:red", "status:late", "status:", "since:soon"])(
    "says that it does not understand %s",
    (q) => {
      expect(parseSearch(new URLSearchParams({ q }), now).faults).toHaveLength(1);
    },
  );
});

describe("a message", () => {
  test.each(["x", "€", "\u{1f6b0}", "\ud800", "\n", '"', "%"])(
    "of 3,000 times %j fits into a cookie, cut off",
    (sign) => {
      const value = encodeFlash({ kind: "done", text: sign.repeat(3000) });
      expect(encodeURIComponent(value).length).toBeLessThanOrEqual(3_500);
      expect(decodeFlash(value)?.text.length).toBeGreaterThan(100);
    },
  );

  test("that is short is shown whole", () => {
    const text = 'Job "a" is replayed: 100 %, \u{1f6b0}; x=y';
    expect(decodeFlash(encodeFlash({ kind: "failed", text }))).toEqual({ kind: "failed", text });
  });

  test.each([undefined, "", "x", "%", '["evil","x"]', '["done",1]', "null", "{}"])("is not %s", (value) => {
    expect(decodeFlash(value)).toBeUndefined();
  });
});
