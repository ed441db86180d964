// The checks of a body take time in proportion to its size. The tests count the characters that are read.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { batchRequest, enqueueRequest } from "../../src/contract/jobs.ts";
import { settlementsRequest } from "../../src/contract/work.ts";
import { firstFault, type Text } from "../../src/core/json-scan.ts";
import { parseStrictJson } from "../../src/core/strict-json.ts";
import { faultsOf } from "../../src/jobs/faults.ts";

/** Characters that were read or cut out of the text. */
function workOn(text: string): number {
  let read = 0;
  const counted: Text = {
    length: text.length,
    charCodeAt(at) {
      read++;
      return text.charCodeAt(at);
    },
    slice(start, end) {
      read += end - start;
      return text.slice(start, end);
    },
  };
  firstFault(counted);
  return read;
}

const bodies: Record<string, (size: number) => string> = {
  "small numbers": (size) => `[${"0,".repeat(size / 2)}0]`,
  "long numbers": (size) => `[${"1234567890123456,".repeat(size / 17)}0]`,
  "one number": (size) => "1".repeat(size),
  exponents: (size) => `[${"1e5,".repeat(size / 4)}0]`,
  "open brackets": (size) => "[".repeat(size),
  "closed brackets": (size) => "]".repeat(size),
  quotes: (size) => '"'.repeat(size),
  "escaped quotes without an end": (size) => `"${'\\"'.repeat(size / 2)}`,
  backslashes: (size) => "\\".repeat(size),
  "a string of backslashes": (size) => `"${"\\".repeat(size)}`,
  "unicode escapes": (size) => `["${"\\u0041".repeat(size / 6)}"]`,
  names: (size) => `{${Array.from({ length: size / 10 }, (_, n) => `"k${n}":0`).join()}}`,
  "names with escapes": (size) => `{${Array.from({ length: size / 10 }, (_, n) => `"\\n${n}":0`).join()}}`,
  objects: (size) => `[${"{},".repeat(size / 3)}0]`,
  "minus signs": (size) => "-".repeat(size),
  colons: (size) => `{"a"${":".repeat(size)}`,
};

describe("the scan of a body reads each character at most twice", () => {
  test.each(Object.entries(bodies))("%s", (_, make) => {
    for (const size of [10_000, 100_000]) {
      const text = make(size);
      expect(workOn(text)).toBeLessThanOrEqual(2 * text.length);
    }
  });

  test("any body", () => {
    const pieces = fc.constantFrom(..."[]{}\",:\\-10e. ua'\n");
    fc.assert(
      fc.property(fc.string({ unit: pieces, maxLength: 200 }), (text) => {
        expect(workOn(text)).toBeLessThanOrEqual(2 * text.length);
      }),
    );
  });
});

describe("the schema of a body", () => {
  /** Counts every read of a field. */
  function watched(looks: { count: number }): object {
    return new Proxy({}, { ownKeys: () => void looks.count++ as never, get: () => looks.count++ });
  }

  test("does not check inside a payload, which is valid JSON once it is parsed", () => {
    const looks = { count: 0 };
    expect(enqueueRequest.safeParse({ type: "a", payload: watched(looks) }).success).toBe(true);
    expect(looks.count).toBe(0);
  });

  test.each([
    ["jobs", (items: unknown[]) => batchRequest.safeParse({ jobs: items })],
    ["settlements", (items: unknown[]) => settlementsRequest.safeParse({ settlements: items })],
    ["tags", (items: unknown[]) => enqueueRequest.safeParse({ type: "a", tags: items })],
  ])("checks the number of %s before it reads them", (path, parse) => {
    const looks = { count: 0 };
    const { error } = parse(Array.from({ length: 5_000 }, () => watched(looks)));
    expect(looks.count).toBe(0);
    expect(error && faultsOf(error)).toMatchObject([{ path }]);
  });

  test("reports a bounded number of faults of bounded length, each with its field", () => {
    const fields = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, n) => [`f${n}${"x".repeat(500)}`, n]),
    );
    const { error } = enqueueRequest.safeParse({ type: "a", ...fields });
    const faults = error ? faultsOf(error) : [];
    expect(faults).toHaveLength(100);
    expect(faults[7]).toEqual({ path: `f7${"x".repeat(298)}`, message: "not a known field" });
  });
});

describe("a fault has the path of the value", () => {
  test.each([
    [String.raw`{"a":[1,{"b":"\u0000"}]}`, "a.1.b"],
    [String.raw`{"a":{"b":["x","\ud800"]}}`, "a.b.1"],
    [`{"a":[0,12345678901234567890]}`, "a.1"],
    [`{"a":{"b":1},"c":{"b":1,"d":[],"b":2}}`, "c.b"],
    [`{"x":{"__proto__":1}}`, "x.__proto__"],
    [`[[],{},{"a":1e999}]`, "2.a"],
  ])("%s", (text, path) => {
    expect(firstFault(text)).toMatchObject({ path });
  });
});

test("other text is accepted, parsed and refused exactly as by JSON.parse", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.boolean(), (value, isSpaced) => {
      const text = JSON.stringify(value, null, isSpaced ? 2 : 0);
      fc.pre(!text.includes("__proto__"));
      expect(parseStrictJson(text)).toEqual(JSON.parse(text));
    }),
  );
  const pieces = fc.constantFrom(...'[]{}",:\\-10e. ua\n', '"a":', "null", "true");
  fc.assert(
    fc.property(fc.string({ unit: pieces, maxLength: 12 }), (text) => {
      fc.pre(firstFault(text) === undefined);
      const parsed = attempt(() => JSON.parse(text));
      expect(attempt(() => parseStrictJson(text))).toEqual(parsed);
    }),
    { numRuns: 5_000 },
  );
});

function attempt(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch {
    return "refused";
  }
}
