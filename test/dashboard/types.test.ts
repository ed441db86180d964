// Types: what each did in the last hour, and a form that enqueues a job from the type's schema.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, definePulledJob, FatalError } from "../../src/index.ts";
import { crons, useDeployment } from "../worker/deployment.ts";
import { refusedFields, signedIn, type Visitor } from "./visitor.ts";

const sent = defineJob("sent", {
  payload: z.object({ fails: z.boolean().default(false) }),
  timeoutSeconds: 10,
  concurrency: 3,
  run: ({ fails }) => {
    if (fails) throw new FatalError("no");
  },
});
const flat = definePulledJob("flat", {
  payload: z.object({
    to: z.string().describe("An address."),
    copies: z.int().min(1),
    share: z.number().optional(),
    isUrgent: z.boolean().optional(),
    size: z.enum(["small", "large"]),
  }),
});
const nested = definePulledJob("nested", {
  payload: z.object({ lines: z.array(z.object({ sku: z.string(), n: z.int().min(1) })) }),
});
const dated = definePulledJob("dated", {
  payload: z.object({ at: z.string().transform((text) => new Date(text)) }),
});
const deployment = useDeployment([sent, flat, nested, dated]);
const { enqueueMany, fire, query } = deployment;
afterEach(() => deployment.quiet());

let admin: Visitor;
beforeEach(async () => {
  admin = await signedIn(deployment, "admin");
});

const plain = (html: string) => html.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
const rowOf = (html: string, type: string) =>
  plain(html.split("<tr>").find((row) => row.includes(`href="/types/${type}"`)) ?? "");

test("a row has the numbers of the last hour, the failure rate and the limits in use", async () => {
  await enqueueMany("sent", [{}, {}, {}, { fails: true }]);
  await fire();
  await fire(crons.reap); // adds up how long jobs took
  const row = rowOf(await admin.page("/types"), "sent");
  expect(row).toMatch(/sent runs 0 4 3 25 % .* 0 of 3 running 1 Pause/);
  expect(row).toMatch(/ms, \d+ ms/); // the percentiles
  expect(rowOf(await admin.page("/types"), "flat")).toMatch(/flat runs 0 0 0 – – – none 0/);
});

test("a type has a page with its options, and a paused one says since when", async () => {
  await admin.post("/actions/pauseJobType", { type: "sent", to: "/types/sent" });
  const text = plain(await admin.page("/types/sent"));
  expect(text).toContain("paused");
  expect(text).toMatch(/Time-out 10 s/);
  expect(text).toContain("0 of 3 running");
  expect(text).toContain("closed, it never opened");
});

test("a type of jobs that this deployment does not define is listed as such", async () => {
  await query(`select sluice.enqueue('stray', '{}')`);
  expect(rowOf(await admin.page("/types"), "stray")).toContain("not in this deployment");
  const html = await admin.page("/types/stray");
  expect(html).not.toContain("Enqueue a job");
});

test.each(["nothing", "constructor", "%F0%9F%92%A5"])("the type %s is a 404 page", async (name) => {
  expect((await admin.get(`/types/${name}`)).status).toBe(404);
});

describe("the form", () => {
  test("of a flat payload has a field for each property, by its kind", async () => {
    const html = await admin.page("/types/flat");
    expect(html).toContain('<label for="field-to">to, text</label>');
    expect(html).toContain("An address.");
    expect(html).toMatch(/name="payload:string:to"[^>]* required/);
    expect(html).toMatch(/name="payload:number:copies" type="number" step="1" required=""/);
    expect(html).toMatch(/name="payload:number:share" type="number" step="any"/);
    expect(html).toMatch(/name="payload:boolean:isUrgent"><option value="">/);
    expect(html).toContain('<option value="large">large</option>');
  });

  test("of any other payload is JSON with an example of its shape", async () => {
    const html = await admin.page("/types/nested");
    const example = /<textarea[^>]*>([^<]*)<\/textarea>/.exec(html)?.[1]?.replaceAll("&quot;", '"') ?? "";
    expect(nested.faultsOf(JSON.parse(example))).toEqual([]);
  });

  test("of a payload that the handler gets in another shape asks for what is sent", async () => {
    expect(await admin.page("/types/dated")).toContain('name="payload:string:at"');
  });

  test("enqueues as the schema wants it, links to the job, and makes no second one when it is sent twice", async () => {
    const fields = {
      ...{ type: "flat", idempotency_key: "once", delay_seconds: "60" },
      ...{ "payload:string:to": "a@b.example", "payload:number:copies": "2", "payload:number:share": "" },
      ...{ "payload:boolean:isUrgent": "true", "payload:enum:size": "large" },
    };
    const html = await (await admin.post("/actions/enqueueJob", fields)).text();
    const id = /href="\/jobs\/([0-9a-f-]{36})"/.exec(html)?.[1];
    const jobs = () => query("select id, payload from sluice.jobs where type = 'flat'");
    expect(await jobs()).toEqual([
      { id, payload: { to: "a@b.example", copies: 2, isUrgent: true, size: "large" } },
    ]);
    const again = await (await admin.post("/actions/enqueueJob", fields)).text();
    expect(again).toContain("it made no second job");
    expect(await jobs()).toHaveLength(1);
  });

  test.each([
    ["a number that is none", { "payload:number:copies": "many" }, ["payload:number:copies"]],
    [
      "a number that would be rounded",
      { "payload:number:copies": "90071992547409931" },
      ["payload:number:copies"],
    ],
    ["fields that do not fit", { "payload:number:copies": "1.5" }, ["payload:number:copies"]],
    ["a delay that is none", { delay_seconds: "soon" }, ["delay_seconds"]],
  ])(
    "is refused with %s at that field, and enqueues nothing",
    async (_, fields: Record<string, string>, names) => {
      const sent: Record<string, string> = { type: "flat", "payload:string:to": "a@b.example", ...fields };
      const response = await admin.post("/actions/enqueueJob", { ...sent, from: "/types/flat" });
      expect(await response.clone().text()).toContain('value="a@b.example"');
      const refused = await refusedFields(response);
      for (const name of names)
        expect(refused).toContainEqual([name, sent[name], expect.stringMatching(/./)]);
      expect(await query("select id from sluice.jobs where type = 'flat'")).toEqual([]);
    },
  );

  test.each([
    ["JSON that is none", "{", "this is not JSON"],
    ["a payload that does not fit", '{"a": 1}', expect.stringMatching(/./)],
    ["a payload that is no object", "[]", expect.stringMatching(/./)],
  ])("of JSON is refused with %s, and keeps what was typed", async (_, payload, why) => {
    const sent = { type: "nested", payload, from: "/types/nested" };
    const refused = await refusedFields(await admin.post("/actions/enqueueJob", sent));
    expect(refused).toEqual([["payload", payload.replaceAll('"', "&quot;"), why]]);
    expect(await query("select id from sluice.jobs where type = 'nested'")).toEqual([]);
  });

  test.each(["nothing", "sluice.canary"])("is refused for the type %s", async (type) => {
    const sent = { type, payload: "{}", from: "/types/flat" };
    expect((await admin.post("/actions/enqueueJob", sent)).status).toBe(403);
  });

  test("is not shown to a viewer", async () => {
    const viewer = await signedIn(deployment, "viewer");
    expect(await viewer.page("/types/flat")).not.toContain("Enqueue a job");
  });
});
