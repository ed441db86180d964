// Keys with their limits, and the audit with its filter.
import { beforeEach, expect, test } from "vitest";
import { pageSize } from "../../src/dashboard/parts/pager.tsx";
import { useDeployment } from "../worker/deployment.ts";
import { note } from "./one-of-each.ts";
import { refusedFields, signedIn, type Visitor } from "./visitor.ts";

const deployment = useDeployment([note]);
const { query } = deployment;

let admin: Visitor;
beforeEach(async () => {
  await query("delete from sluice.api_key");
  admin = await signedIn(deployment, "admin");
});

const plain = (html: string) => html.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");

test("a key can be limited to types and to a rate", async () => {
  const fields = { name: "shop", role: "producer", job_types: "note, other", rate_limit_per_second: "5" };
  expect((await admin.post("/actions/addKey", fields)).status).toBe(200);
  const [key] = await query("select job_types, rate_limit_per_second from sluice.api_key");
  expect(key).toEqual({ job_types: ["note", "other"], rate_limit_per_second: 5 });
  expect(plain(await admin.page("/keys"))).toMatch(/shop producer note, other 5 now never works Revoke/);
});

test.each([
  ["types for a viewer", { role: "viewer", job_types: "note" }, ["job_types"]],
  ["a rate of nothing", { role: "producer", rate_limit_per_second: "0" }, ["rate_limit_per_second"]],
  [
    "a rate that is no number",
    { role: "producer", rate_limit_per_second: "fast" },
    ["rate_limit_per_second"],
  ],
  ["a name that is none", { role: "producer", name: "" }, ["name"]],
])(
  "a key with %s is refused at that field, and none is made",
  async (_, fields: Record<string, string>, names) => {
    const sent: Record<string, string> = { name: "shop", from: "/keys", ...fields };
    const refused = await refusedFields(await admin.post("/actions/addKey", sent));
    expect(refused).toEqual(names.map((name) => [name, sent[name], expect.stringMatching(/./)]));
    expect(await query("select id from sluice.api_key")).toEqual([]);
  },
);

test("the audit is narrowed by who, what and where, and links to what it is about", async () => {
  await query(`select sluice.write_audit('ada (1)', 'pause', 'queue default', null, '{"paused": true}')`);
  await query(`select sluice.write_audit('jun (2)', 'resume', 'type note', '{"paused": true}', null)`);
  const found = async (filter: string) => plain(await admin.page(`/audit?${filter}`));
  expect(await found("actor=ADA")).toMatch(/pause queue default ada/);
  expect(await found("actor=ADA")).not.toContain("jun (2)");
  expect(await found("action=resume&target=type")).toContain("jun (2)");
  expect(await found("target=nothing")).toContain("No entry fits");
  expect(await admin.page("/audit")).toContain('href="/types/note"');
});

test("the audit has pages, each entry once, also with a filter", async () => {
  await query(
    `select sluice.write_audit('pager', case when n % 2 = 0 then 'pause' else 'resume' end, 'queue q' || n, null, null)
     from generate_series(1, ${pageSize * 4}) as n`,
  );
  const seen: string[] = [];
  let path: string | undefined = "/audit?actor=pager&action=pause";
  for (let number = 0; path && number < 5; number++) {
    const text: string = await admin.page(path);
    seen.push(...[...text.matchAll(/>(queue q\d+)</g)].map(([, target]) => target ?? ""));
    path = /href="([^"]+)" rel="next"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  }
  expect(seen).toHaveLength(pageSize * 2);
  expect(new Set(seen).size).toBe(seen.length);
});

test("a search in a long audit says how far it came, and goes on from there", async () => {
  await query(`select sluice.write_audit('old ada', 'pause', 'queue old', null, null)`);
  await query(
    `select sluice.write_audit('jun', 'resume', 'queue new', null, null) from generate_series(1, 10050)`,
  );
  const first = await admin.page("/audit?actor=old+ada");
  expect(plain(first)).toMatch(/Searched back to entry \d+/);
  const next = /href="([^"]+)" rel="next"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
  expect(plain(await admin.page(next))).toContain("queue old");
});
