// Policies: how many drains a backlog gets, and where outgoing requests may go.
import { describe, expect, test } from "vitest";
import { drainsFor, drainsOfRound } from "../../src/core/policy/fan-out.ts";
import { findRefusal } from "../../src/core/policy/outgoing-target.ts";

test("a backlog gets one drain for each 500 jobs, up to the limit", () => {
  const fanOut = { jobsPerDrain: 500, maxDrains: 4 };
  expect([0, 1, 500, 501, 100_000].map((due) => drainsFor(due, fanOut))).toEqual([0, 1, 1, 2, 4]);
});

test("every queue gets its first drain before any gets a second, up to the round's limit", () => {
  const waiting = [
    { queue: "large", due: 100_000 },
    { queue: "small", due: 1 },
    { queue: "middle", due: 900 },
  ];
  const fanOut = { jobsPerDrain: 500, maxDrains: 3 };
  expect(drainsOfRound(waiting, fanOut, { limit: 10 })).toEqual([
    "large",
    "small",
    "middle",
    "large",
    "middle",
    "large",
  ]);
  expect(drainsOfRound(waiting, fanOut, { limit: 4 })).toEqual(["large", "small", "middle", "large"]);
});

describe("an outgoing request", () => {
  test.each([
    "https://example.com/hook?x=1",
    "https://8.8.8.8/",
    "https://sub.domain.example:8443/path",
    "https://[2606:4700::1111]/",
    "https://[2001:4860:4860::8888]/",
    "https://contest.com/",
    "https://svc.example.com/",
    "https://other.box/",
  ])("may go to %s", (url) => {
    expect(findRefusal(url, { allowPrivate: false })).toBeNull();
  });

  test.each([
    ["http://example.com/", "must be an https URL"],
    ["ftp://example.com/", "must be an https URL"],
    ["nonsense", "must be a URL"],
    ["https://", "must be a URL"],
    ["https://exa mple.com/", "must be a URL"],
    ["https://example.com\\@127.0.0.1/", "must be a URL"],
    ["https://user:secret@example.com/", "must not contain a user name or password"],
    ["https://127.0.0.1/", "must not be a private address"],
    ["https://127.1/", "must not be a private address"],
    ["https://2130706433/", "must not be a private address"],
    ["https://0x7f000001/", "must not be a private address"],
    ["https://0177.0.0.1/", "must not be a private address"],
    ["https://10.1.2.3/", "must not be a private address"],
    ["https://172.20.0.1/", "must not be a private address"],
    ["https://192.168.1.1:8080/x", "must not be a private address"],
    ["https://169.254.169.254/latest/meta-data", "must not be a private address"],
    ["https://100.64.0.1/", "must not be a private address"],
    ["https://0.0.0.0/", "must not be a private address"],
    ["https://localhost/", "must not be a private address"],
    ["https://localhost./", "must not be a private address"],
    ["https://db.internal/", "must not be a private address"],
    ["https://printer.local/", "must not be a private address"],
    ["https://intranet/", "must not be a private address"],
    ["https://[::1]/", "must not be a private address"],
    ["https://[fe80::1]/", "must not be a private address"],
    ["https://[fd00::1]/", "must not be a private address"],
    ["https://[::ffff:127.0.0.1]/", "must not be a private address"],
    ["https://[2002:7f00:1::]/", "must not be a private address"],
    ["https://[2001::7f00:1]/", "must not be a private address"],
    ["https://[2001:0:4136:e378::]/", "must not be a private address"],
    ["https://[2001:db8::1]/", "must not be a private address"],
    ["https://[3fff::1]/", "must not be a private address"],
    ["https://192.0.2.1/", "must not be a private address"],
    ["https://198.51.100.7/", "must not be a private address"],
    ["https://203.0.113.9/", "must not be a private address"],
    ["https://198.18.0.1/", "must not be a private address"],
    ["https://localhost../", "must be a URL"],
    ["https://.example.com/", "must be a URL"],
    ["https://nas.home.arpa/", "must not be a private address"],
    ["https://db.default.svc/", "must not be a private address"],
    ["https://db.default.svc.cluster.local./", "must not be a private address"],
    ["https://app.test/", "must not be a private address"],
    ["https://fritz.box/", "must not be a private address"],
  ])("may not go to %s: it %s", (url, refusal) => {
    expect(findRefusal(url, { allowPrivate: false })).toBe(refusal);
  });

  test("may go to a private address if the deployment allows it", () => {
    expect(findRefusal("http://127.0.0.1:9000/hook", { allowPrivate: true })).toBeNull();
    expect(findRefusal("file:///etc/passwd", { allowPrivate: true })).not.toBeNull();
  });
});
