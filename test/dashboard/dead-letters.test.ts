// Dead letters: groups, the number before a run, the run with its progress, and its end.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { pageSize } from "../../src/dashboard/parts/pager.tsx";
import { defineJob, FatalError } from "../../src/index.ts";
import { useDeployment } from "../worker/deployment.ts";
import { flashOf, refusedFields, signedIn, type Visitor } from "./visitor.ts";

const order = defineJob("order", {
  payload: z.object({ n: z.int(), passes: z.boolean().default(false) }),
  timeoutSeconds: 10,
  run: ({ n, passes }) => {
    if (!passes) throw new FatalError(n < 1000 ? `order ${n} is unknown` : "<script>alert(1)</script>");
  },
});
const deployment = useDeployment([order]);
const { enqueueMany, fire, query, quiet } = deployment;
afterEach(quiet);

let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
async function bury(...orders: number[]): Promise<void> {
  await enqueueMany(
    "order",
    orders.map((n) => ({ n })),
  );
  await fire();
}
const plain = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&quot;", '"')
    .replaceAll(/\s+/g, " ");
const linkOf = (html: string, label: string) =>
  new RegExp(`href="([^"]+)" aria-label="${label}`).exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
/** What the form of the dialog would send. */
const hiddenFields = (html: string) =>
  Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  );
const statuses = async () =>
  (
    await query<{ status: string; jobs: number }>(
      "select status, count(*)::int as jobs from sluice.jobs where type = 'order' group by 1 order by 1",
    )
  ).map(({ status, jobs }) => `${jobs} ${status}`);

describe("groups", () => {
  test("have the pattern of their errors, their number and links to their jobs", async () => {
    await bury(1, 2, 3, 1000);
    const html = await admin.page("/dead-letters");
    const text = plain(html);
    expect(text).toContain("4 jobs of 2 kinds, none lost");
    expect(text).toContain("order ‹n› is unknown");
    expect(html).not.toContain("<script>alert");
    expect(html).toContain("3 deaths in 24 hours");
    expect(text).toContain("Replay all 4 jobs");
    const [, url = ""] = /href="(\/dead-letters\/jobs\?[^"]+fingerprint[^"]+)"/.exec(html) ?? [];
    const list = plain(await admin.page(url.replaceAll("&amp;", "&")));
    expect(list).toContain("3 jobs in this list");
    expect(list).toContain("order 3 is unknown");
  });

  test("are narrowed by the search line and by parameters, which also says what it did not understand", async () => {
    await bury(1);
    for (const filter of ["type=order", "q=type%3Aorder+reason%3Afatal"])
      expect(plain(await admin.page(`/dead-letters?${filter}`))).toContain("1 job of 1 kind");
    const none = plain(await admin.page("/dead-letters?q=type%3Aother"));
    expect(none).toContain("No dead letter fits this search");
    const odd = plain(await admin.page("/dead-letters?q=colour%3Ared+reason%3Aboredom+fingerprint%3A1"));
    for (const fault of ['"colour:red" is not', '"boredom" is no reason', '"1" is no fingerprint'])
      expect(odd).toContain(fault);
  });

  test("without any say how to make one", async () => {
    expect(plain(await admin.page("/dead-letters"))).toContain("enqueue a job that throws a FatalError");
    expect(plain(await admin.page("/dead-letters/runs"))).toContain("No runs yet");
  });
});

test("one by one they have pages, each job once", async () => {
  await bury(...numbers(pageSize + 5));
  const first = await admin.page("/dead-letters/jobs");
  const next = /href="([^"]+)" rel="next"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const second = await admin.page(next);
  const ids = [...`${first}${second}`.matchAll(/<a class="id h\d" href="\/jobs\/([^"]+)"/g)].map(
    ([, id]) => id,
  );
  expect(ids).toHaveLength(pageSize + 5);
  expect(new Set(ids).size).toBe(ids.length);
  expect(await admin.page("/dead-letters/jobs?before=nonsense")).toContain(ids[0]);
});

describe("a run", () => {
  test("is offered with its number first, takes the rate, the patch and the limit, and its page shows how far it is", async () => {
    await bury(1, 2, 3, 1000);
    const dialog = await admin.page(linkOf(await admin.page("/dead-letters"), "Replay 3 of order, fatal"));
    expect(plain(dialog)).toContain("3 jobs of order match.");
    expect(dialog).toMatch(/<button[^>]*>Replay 3 jobs<\/button>/);
    expect(plain(dialog)).toContain("At 60 a minute this takes 3 s .");
    await bury(4); // after the count, so it is not taken along
    const response = await admin.post("/actions/startDeadRun", {
      ...hiddenFields(dialog),
      ...{ per_minute: "60", count: "2", payload_patch: '{ "passes": true }', note: "orders are back" },
    });
    expect(response.headers.get("location")).toBe("/dead-letters");
    const [, message] = flashOf(admin);
    expect(message).toMatch(/^Replay \d+ has started: 2 jobs\.$/);
    await quiet();
    const id = /\d+/.exec(message)?.[0];
    const run = plain(await admin.page(`/dead-letters/runs/${id}`));
    expect(run).toMatch(/of 2 replayed/);
    expect(run).toContain("orders are back");
    expect(plain(await admin.page("/dead-letters"))).toContain(`Replay ${id}`);
  });

  test("tries one first, and the others stay dead", async () => {
    await bury(1, 2, 3);
    const dialog = await admin.page("/dead-letters/start?action=replay&type=order");
    await admin.post("/actions/startDeadRun", {
      ...hiddenFields(dialog),
      ...{ per_minute: "", count: "3", payload_patch: '{ "passes": true }', first: "1" },
    });
    await quiet();
    expect(await statuses()).toEqual(["1 completed", "2 dead"]);
  });

  test("is started for each of several groups, with their number first", async () => {
    await bury(1, 2, 3, 1000);
    const list = await admin.page("/dead-letters");
    const boxes = [...list.matchAll(/name="group" value="([^"]+)"/g)].map(([, value]) => value ?? "");
    expect(boxes).toHaveLength(2);
    const chosen = new URLSearchParams([["action", "replay"], ...boxes.map((box) => ["group", box])]);
    const dialog = await admin.page(`/dead-letters/start?${chosen}`);
    expect(plain(dialog)).toContain("4 jobs of 2 groups.");
    expect(dialog).toMatch(/<button[^>]*>Replay 4 jobs<\/button>/);
    const ids: [string, string][] = boxes.map((box) => ["id", box]);
    const { id: _, ...fields } = hiddenFields(dialog);
    await admin.post("/actions/startDeadRuns", [
      ...Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]),
      ...ids,
      ["per_minute", "60"],
      ["first", "1"],
    ]);
    expect(flashOf(admin)).toEqual(["done", "2 runs have started, one for each group."]);
    await quiet();
    expect(await query("select matched::int, per_minute from sluice.dead_run order by id")).toEqual([
      { matched: 1, per_minute: 60 },
      { matched: 1, per_minute: 60 },
    ]);
    // Close leads back to the list with the same boxes checked.
    const back = /href="([^"]+)" data-close/.exec(dialog)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await admin.page(back)).match(/name="group"[^>]* checked/g)).toHaveLength(2);
  });

  test("is started for one group that is selected alone, with all that can be said of one", async () => {
    await bury(1, 2, 1000);
    const list = await admin.page("/dead-letters");
    const [, box = ""] = /name="group" value="([^"]+)"/.exec(list) ?? [];
    const dialog = await admin.page(
      `/dead-letters/start?${new URLSearchParams({ action: "discard", group: box })}`,
    );
    expect(dialog).toMatch(/<button[^>]*>Discard 2 jobs<\/button>/);
    expect(hiddenFields(dialog)).toMatchObject({ type: "order", reason: "fatal", action: "discard" });
  });

  test("is not offered for everything if nothing was selected", async () => {
    await bury(1, 2);
    const html = await admin.page("/dead-letters/start?choose=groups&action=discard");
    const dialog = html.slice(html.indexOf("<dialog"));
    expect(plain(dialog)).toContain("Select a group first: none is selected.");
    expect(dialog).not.toMatch(/<button[^>]*>Discard/);
    expect(dialog).not.toContain('action="/actions/');
  });

  test("of a form that names no group changes nothing", async () => {
    await bury(1);
    await admin.post("/actions/startDeadRuns", { action: "replay", to: "/dead-letters" });
    expect(flashOf(admin)).toEqual(["failed", "No group is selected."]);
    await admin.post("/actions/startDeadRuns", { action: "replay", id: "nonsense", to: "/dead-letters" });
    expect(flashOf(admin)[0]).toBe("failed");
    expect(await query("select from sluice.dead_run")).toEqual([]);
  });

  test("says what became of the jobs that it replayed", async () => {
    await bury(1, 2);
    await query(
      "select sluice.start_dead_run('ann', 'replay', null, null, null, null, null, null, null, null, null)",
    );
    await fire();
    await fire();
    const [run] = await query<{ id: string }>("select id from sluice.dead_run");
    const text = plain(await admin.page(`/dead-letters/runs/${run?.id}`));
    expect(text).toContain("What became of them 2 replayed jobs, as they are now");
    expect(text).toContain("2 died again");
  });

  test("is stopped, which leaves the others dead", async () => {
    await bury(1, 2, 3, 4, 5);
    const dialog = await admin.page("/dead-letters/start?action=replay&type=order");
    await admin.post("/actions/startDeadRun", {
      ...hiddenFields(dialog),
      ...{ per_minute: "1", count: "5", payload_patch: '{ "passes": true }' },
    });
    await quiet();
    const html = await admin.page("/dead-letters");
    expect(plain(html)).toMatch(/Stopping leaves the other \d dead, as they are\./);
    const run = /name="run" value="(\d+)"/.exec(html)?.[1] ?? "";
    await admin.post("/actions/stopDeadRun", { run, to: "/dead-letters" });
    expect(flashOf(admin)[1]).toMatch(/^Run \d+ is stopped: .*, the other \d are dead, as they were\.$/);
    expect(plain(await admin.page(`/dead-letters/runs/${run}`))).toContain("was stopped");
    await admin.post("/actions/stopDeadRun", { run, to: "/dead-letters" });
    expect(flashOf(admin)).toEqual(["failed", expect.stringContaining("only a running one can be stopped")]);
  });

  test("discards with a reason", async () => {
    await bury(1, 2);
    const dialog = await admin.page("/dead-letters/start?action=discard&type=order");
    expect(dialog).toMatch(/<input id="note"[^>]*required/);
    expect(dialog).toMatch(/<button[^>]*>Discard 2 jobs<\/button>/);
    await admin.post("/actions/startDeadRun", { ...hiddenFields(dialog), count: "2", note: "too old" });
    await quiet();
    expect(await statuses()).toEqual(["2 discarded"]);
  });

  test.each([
    ["a rate that is no number", { per_minute: "fast" }, ["per_minute"]],
    ["a patch that is no JSON", { payload_patch: "{" }, ["payload_patch"]],
    ["a patch for no type", { type: "", payload_patch: "{}" }, ["payload_patch"]],
    ["a limit of nothing", { count: "0" }, ["count"]],
  ])(
    "is refused with %s in its dialog, and nothing changes",
    async (_, fields: Record<string, string>, names) => {
      await bury(1);
      const from = "/dead-letters/start?action=replay&type=order";
      const sent: Record<string, string> = {
        action: "replay",
        type: "order",
        note: "typed",
        from,
        ...fields,
      };
      const response = await admin.post("/actions/startDeadRun", sent);
      const [, dialog = ""] = (await response.clone().text()).split("<dialog open");
      expect(dialog).toContain('maxlength="1000" value="typed"');
      expect(dialog).toMatch(/<p class="t-dead" role="alert">[^<]+/);
      const refused = await refusedFields(response);
      expect(refused).toEqual(names.map((name) => [name, sent[name], expect.stringMatching(/./)]));
      await quiet();
      expect(await query("select id from sluice.dead_run")).toEqual([]);
      expect(await statuses()).toEqual(["1 dead"]);
    },
  );

  test("is not offered to a viewer, nor for nothing", async () => {
    await bury(1);
    const viewer = await signedIn(deployment, "viewer");
    const dialog = await viewer.page("/dead-letters/start?action=replay&type=order");
    expect(plain(dialog)).toContain("Only an admin can replay or discard jobs.");
    expect(dialog).not.toContain("Replay 1 job");
    const none = await admin.page("/dead-letters/start?action=replay&type=other");
    expect(none).not.toContain("/actions/startDeadRun");
  });

  test.each(["0", "x", "99999999999999999999", "4711"])(
    "that is not there (%s) is a 404 page",
    async (id) => {
      expect((await admin.get(`/dead-letters/runs/${id}`)).status).toBe(404);
    },
  );
});
