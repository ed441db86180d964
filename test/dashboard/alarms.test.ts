// Alarms: what each rule sees, silences with a reason and an end, and what has happened.
import { afterEach, beforeEach, expect, test } from "vitest";
import { alarmNames } from "../../src/core/alarms/alarm.ts";
import { crons, useDeployment } from "../worker/deployment.ts";
import { makeOneOfEach, note } from "./one-of-each.ts";
import { flashOf, refusedFields, signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
afterEach(() => deployment.quiet());

let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

const plain = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll(/\s+/g, " ");
const watch = () => deployment.fire(crons.watch);
const rowOf = (html: string, alarm: string) =>
  plain(html.split("<tr>").find((row) => row.includes(`>${alarm}</span>`)) ?? "");

test("every rule has a row with what it measures, what it sees and its limit", async () => {
  const html = await admin.page("/alarms");
  for (const alarm of alarmNames) expect(rowOf(html, alarm)).toContain(alarm);
  expect(rowOf(html, "oldest_transaction")).toContain("longer than 30 min");
  expect(rowOf(html, "queue_growing")).toContain("more than 1,000 in 15 min");
  expect(rowOf(html, "books_unbalanced")).toMatch(/ok The books balance .* 0 any difference/);
  expect(plain(html)).toContain("15 rules, none firing aloud, none silenced");
});

test("an alarm that fires is first, with its value and since when, and its history begins", async () => {
  await makeOneOfEach(deployment);
  expect(rowOf(await admin.page("/alarms"), "dead_letters")).toMatch(/about to fire .*1 dead letter/);
  await watch();
  const html = await admin.page("/alarms");
  expect(rowOf(html, "dead_letters")).toMatch(/firing .*1 dead letter .* 1 any warning/);
  expect(html.indexOf(">dead_letters</span>")).toBeLessThan(html.indexOf(">queue_growing</span>"));
  expect(plain(html)).toContain("dead_letters firing");
  expect(plain(await admin.page("/alarms/history"))).toContain("dead_letters firing");
});

test("a silence has a reason and an end, is named, and can be ended", async () => {
  await makeOneOfEach(deployment);
  await watch();
  await admin.post("/actions/silenceAlarm", {
    ...{ alarm: "dead_letters", minutes: "60", reason: "the printer is known", to: "/alarms" },
  });
  expect(flashOf(admin)[1]).toMatch(/^dead_letters is silenced until .* UTC\.$/);
  const html = await admin.page("/alarms");
  expect(rowOf(html, "dead_letters")).toMatch(/silenced .*silence ends in (59 min|1 h).*End silence/);
  expect(plain(html)).toContain("“the printer is known”");
  await admin.post("/actions/unsilenceAlarm", { alarm: "dead_letters", to: "/alarms" });
  const after = await admin.page("/alarms");
  expect(rowOf(after, "dead_letters")).toContain("firing");
  expect(plain(after)).toContain("dead_letters no longer silenced");
});

test("a silence until a time takes the time as UTC", async () => {
  const until = new Date(Date.now() + 3 * 60 * 60 * 1000).toISOString().slice(0, 16);
  await admin.post("/actions/silenceAlarm", { alarm: "dead_letters", minutes: "60", until });
  const [silence] = await deployment.query<{ until: string }>("select until from sluice.alarm_silence");
  expect(new Date(silence?.until ?? "").toISOString()).toBe(`${until}:00.000Z`);
});

test.each([
  ["a time in the past", { until: "2020-01-01T00:00" }, "until"],
  ["a time that is none", { until: "tomorrow" }, "until"],
  ["neither", { minutes: "" }, "minutes"],
])("a silence with %s is refused at that field, and nothing changes", async (_, fields, name) => {
  const sent: Record<string, string> = { alarm: "dead_letters", reason: "known", from: "/alarms", ...fields };
  const response = await admin.post("/actions/silenceAlarm", sent);
  const html = await response.clone().text();
  expect(await refusedFields(response)).toEqual([[name, sent[name], expect.stringMatching(/./)]]);
  expect(html).toContain('<option value="dead_letters" selected="">');
  expect(html).toContain('name="reason" aria-describedby="reason-hint" maxlength="1000" value="known"');
  expect(html).not.toContain("hx-get"); // it would lose what was typed
  expect(await deployment.query("select * from sluice.alarm_silence")).toEqual([]);
});

test("the link of a row chooses its alarm in the form", async () => {
  expect(await admin.page("/alarms?silence=queue_growing")).toMatch(
    /<option value="queue_growing" selected[^>]*>/,
  );
});

test("a viewer sees the states, and neither the form nor a button", async () => {
  const viewer = await signedIn(deployment, "viewer");
  const html = await viewer.page("/alarms");
  expect(html).not.toContain("Silence an alarm");
  expect(html).not.toContain("Send a test notice");
});

test("without deliveries and targets the pages say how to get some", async () => {
  expect(plain(await admin.page("/alarms"))).toContain("Set SLUICE_ALARM_TARGETS");
  expect(plain(await admin.page("/alarms/deliveries"))).toContain("No notices yet");
  expect(plain(await admin.page("/alarms/history"))).toContain("Nothing has happened yet");
});

test("deliveries say what became of them", async () => {
  await deployment.query(
    `insert into sluice.delivery (id, target, about, notice)
     values (gen_random_uuid(), 'ops', 'dead_letters//note', '{"type": "alarm.firing", "data": {"alarm": "dead_letters", "job_type": "note"}}')`,
  );
  expect(plain(await admin.page("/alarms/deliveries"))).toMatch(/ops waiting dead_letters, firing/);
});
