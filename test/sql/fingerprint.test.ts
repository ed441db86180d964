// fingerprint: which errors are of one kind.
import { describe, expect, test } from "vitest";
import { useTestDatabase } from "../support/test-database.ts";
import { only, verbsOf } from "../support/verbs.ts";

const queue = verbsOf(useTestDatabase());

const patternOf = async (message: string) =>
  only(await queue.query<{ pattern: string }>("select sluice.error_pattern($1) as pattern", [message]))
    .pattern;
const fingerprintOf = async (message: string | null) =>
  only(await queue.query<{ print: string }>("select sluice.error_fingerprint($1) as print", [message])).print;

describe("the kind of an error", () => {
  test.each([
    ["HTTP 503 from https://api.example.com/v1/users/12?x=1: no answer", "HTTP ‹n› from ‹url›: no answer"],
    ["see http://10.0.0.1:80/a/b.", "see ‹url›."],
    ["(postgres://u:p@db/x)", "(‹url›)"],
    ['user "ann" is unknown', "user ‹text› is unknown"],
    ["user 'ann' is unknown", "user ‹text› is unknown"],
    ["column `a b` of “t”", "column ‹text› of ‹text›"],
    ["can't open bob's file", "can't open bob's file"],
    ['{"code":"E1","at":12}', "{‹text›:‹text›:‹n›}"],
    ["order 0190a5b2-0000-7000-8000-00000000abcd is gone", "order ‹id› is gone"],
    ["order 0190A5B2-0000-7000-8000-00000000ABCD is gone", "order ‹id› is gone"],
    ["charge ch_3NabcQ9xZyyyK2 declined", "charge ‹id› declined"],
    ["commit deadbe7 is missing", "commit ‹id› is missing"],
    ["object 0x7ffe12ab at 0X1F", "object ‹n› at ‹n›"],
    ["connect ECONNREFUSED 10.0.0.1:5432", "connect ECONNREFUSED ‹n›"],
    ["took 1.5 s, 3,000 rows, -7 left", "took ‹n› s, ‹n› rows, -‹n› left"],
    ["late since 2026-11-16T12:00:00.123Z", "late since ‹time›"],
    ["late since 2026-11-16 12:00:00+01", "late since ‹time›"],
    ["late since 2026-11-16", "late since ‹time›"],
    ["mail to ann.b+c@mail.example.com bounced", "mail to ‹email› bounced"],
    ["ids 1, 2, 3 are missing", "ids ‹n› are missing"],
    ["ids 4 are missing", "ids ‹n› are missing"],
    ["  a\t b  ", "a b"],
    ["first line\nsecond line 2", "first line"],
    ["first line\r\nsecond line", "first line"],
    ["the lease ran out", "the lease ran out"],
    ["", ""],
    ["名前 12 が見つかりません", "名前 ‹n› が見つかりません"],
  ])("%j is %j", async (message, pattern) => {
    expect(await patternOf(message)).toBe(pattern);
  });

  test("is short, however long the error is", async () => {
    expect(await patternOf("a ".repeat(2000))).toHaveLength(200);
    expect(await patternOf("1".repeat(4000))).toBe("‹n›");
  });
});

test("errors of one kind have one fingerprint, and others have another", async () => {
  const first = await fingerprintOf("user 1 is unknown");
  expect(await fingerprintOf("user 22 is unknown\nat x.ts:1")).toBe(first);
  expect(await fingerprintOf("user 22 is gone")).not.toBe(first);
  // Stored fingerprints have to be found again, on any server and version.
  expect(first).toBe("-1153438452022023244");
});

test("no error has the fingerprint 0", async () => {
  expect([await fingerprintOf(""), await fingerprintOf(null)]).toEqual(["0", "0"]);
});

test("an error of any characters gets its fingerprint in less than a second", async () => {
  const startedMs = performance.now();
  for (const text of [
    "'".repeat(4000),
    "a-".repeat(2000),
    "1a".repeat(2000),
    "@.".repeat(2000),
    "://".repeat(1300),
  ])
    await fingerprintOf(text);
  expect(performance.now() - startedMs).toBeLessThan(1000);
});
