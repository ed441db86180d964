// Errors of the database: which problem each SQLSTATE becomes, and which message callers see.
import { describe, expect, test } from "vitest";
import { databaseError, isCollision, sqlstateOf } from "../../src/core/database-errors.ts";

const codeOf = (sqlstate: string) => databaseError(sqlstate, { message: "m", cause: undefined })?.code;

test.each([
  ["", "database_unavailable"],
  ["08006", "database_unavailable"],
  ["28P01", "database_unavailable"],
  ["3D000", "database_unavailable"],
  ["42501", "database_unavailable"],
  ["53300", "database_unavailable"],
  ["57P03", "database_unavailable"],
  ["25006", "database_read_only"],
  ["53100", "database_full"],
  ["53200", "database_failing"],
  ["53400", "database_failing"],
  ["58000", "database_unavailable"],
  ["58030", "database_failing"],
  ["40001", "database_busy"],
  ["40P01", "database_busy"],
  ["55P03", "database_busy"],
  ["57014", "database_busy"],
  ["3F000", "schema_outdated"],
  ["42883", "schema_outdated"],
  ["42P01", "schema_outdated"],
  ["SL503", "schema_outdated"],
  ["22023", "request_invalid"],
  ["SL422", "idempotency_conflict"],
  ["23505", undefined],
  ["42601", undefined],
])("SQLSTATE %s becomes %s", (sqlstate, code) => expect(codeOf(sqlstate)).toBe(code));

describe("the messages", () => {
  test("of the engine's own errors go to the caller, and those of Postgres do not", () => {
    const messageOf = (sqlstate: string) =>
      databaseError(sqlstate, { message: 'relation "x"', cause: undefined })?.message;
    expect(messageOf("22023")).toBe('relation "x"');
    expect(messageOf("42P01")).toContain("npx sluice migrate");
    expect(messageOf("42P01")).not.toContain('"x"');
  });
});

test("only an error that surely rolled back is a collision", () => {
  expect(["40001", "40P01", "42883", "XX000"].every(isCollision)).toBe(true);
  expect(["40003", "08006", "57014", ""].some(isCollision)).toBe(false); // 40003: it may have been committed
});

test("a SQLSTATE is found in the causes of an error, and other codes are ignored", () => {
  const below = Object.assign(new Error("m"), { code: "53100" });
  expect(sqlstateOf(new Error("a", { cause: new Error("b", { cause: below }) }))).toBe("53100");
  expect(sqlstateOf(Object.assign(new Error("m"), { code: "ECONNRESET" }))).toBeUndefined();
});
