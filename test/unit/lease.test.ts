// The lease as a puller gets it: a token that a Worker of another version can read.
import { expect, test } from "vitest";
import { encodeCursor } from "../../src/edge/http/codec/cursor.ts";
import { decodeLease, encodeLease } from "../../src/edge/http/codec/lease.ts";

const key = "0190a7b5-0000-4000-8000-000000000000";
const lease = { key, type: "echo", attempt: 2, isProbe: false, isLinked: false };
/** As it was before there were flows. */
const fourParts = encodeCursor(JSON.stringify([key, "echo", 2, false]));

test.each([false, true])("is read as it was written, linked: %s", (isLinked) => {
  expect(decodeLease(encodeLease({ ...lease, isLinked }))).toEqual({ ...lease, isLinked });
});

test("of a job that nobody waits for has four parts, as before", () => {
  expect(encodeLease(lease)).toBe(fourParts);
  expect(decodeLease(fourParts)).toEqual(lease);
});

test.each(["", "x", encodeCursor("[]"), encodeCursor(JSON.stringify([key, "echo", 2, false, 1]))])(
  "that is none is refused: %j",
  (token) => {
    expect(() => decodeLease(token)).toThrow("invalid lease");
  },
);
