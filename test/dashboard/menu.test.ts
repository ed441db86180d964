// The numbers beside the menu: dead letters, and alarms that fire.
import { afterEach, beforeEach, expect, test } from "vitest";
import { crons, useDeployment } from "../worker/deployment.ts";
import { makeOneOfEach, note } from "./one-of-each.ts";
import { signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
afterEach(() => deployment.quiet());

let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

/** Beside each link: "Dead letters 1". */
async function notesOf(path: string): Promise<string[]> {
  const html = await admin.page(path);
  return [...html.matchAll(/([A-Z][a-z ]+)<\/a><span class="nav-n[^>]*>([^<]*)</g)].map(
    ([, name, text]) => `${name} ${text}`,
  );
}

test("nothing is dead and nothing fires, so there are none", async () => {
  expect(await notesOf("/")).toEqual([]);
  expect(await notesOf("/flows")).toEqual([]);
});

test("a dead letter and an alarm that fires are counted on every page, also where it has found nothing", async () => {
  await makeOneOfEach(deployment);
  await deployment.fire(crons.watch);
  for (const path of ["/", "/jobs", "/jobs?type=nobody", "/dead-letters", "/alarms", "/audit?actor=nobody"])
    expect([path, await notesOf(path)]).toEqual([path, ["Dead letters 1", "Alarms 1 firing"]]);
});

test("an alarm that is silenced does not fire aloud", async () => {
  await makeOneOfEach(deployment);
  await deployment.fire(crons.watch);
  await admin.post("/actions/silenceAlarm", { alarm: "dead_letters", minutes: "60", to: "/alarms" });
  expect(await notesOf("/jobs")).toEqual(["Dead letters 1", "Alarms 1 silenced"]);
});

test("the rows of a page keep their order", async () => {
  await deployment.enqueueMany(
    "note",
    Array.from({ length: 40 }, (_, n) => ({ text: `number ${n}` })),
  );
  const html = await admin.page("/jobs");
  const numbers = [...html.matchAll(/number (\d+)/g)].map(([, number]) => Number(number));
  expect(numbers).toEqual(Array.from({ length: 40 }, (_, n) => 39 - n));
});
