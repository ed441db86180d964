// SLUICE_ACCESS_…: the settings of Cloudflare Access.
import { expect, test } from "vitest";
import { parseSettings } from "../../src/edge/settings/env.ts";

const required = {
  DATABASE_URL: "postgresql://user:password@host.example/sluice",
  SLUICE_ADMIN_KEY: "sk_0123456789abcdef",
};
const access = {
  SLUICE_ACCESS_TEAM_DOMAIN: "acme.cloudflareaccess.com",
  SLUICE_ACCESS_AUDIENCE: "tag",
  SLUICE_ACCESS_ROLES: '{"Ada@example.com": "admin", "*@example.com": "viewer"}',
};

test("without them there is no Access", async () => {
  expect((await parseSettings(required)).access).toBeUndefined();
});

test("the team's domain becomes the issuer, and e-mail addresses ignore case", async () => {
  expect((await parseSettings({ ...required, ...access })).access).toEqual({
    teamUrl: "https://acme.cloudflareaccess.com",
    audience: "tag",
    roles: new Map([
      ["ada@example.com", "admin"],
      ["*@example.com", "viewer"],
    ]),
  });
});

test.each(Object.keys(access))("%s alone is refused, and the message names the others", async (name) => {
  const others = Object.keys(access).filter((other) => other !== name);
  const alone = { ...required, [name]: access[name as keyof typeof access] };
  const error = await parseSettings(alone).catch((thrown: Error) => thrown);
  for (const other of others) expect((error as Error).message).toContain(`${other} is not set`);
});

test.each([
  ["a private team", { SLUICE_ACCESS_TEAM_DOMAIN: "http://127.0.0.1" }, "SLUICE_ACCESS_TEAM_DOMAIN"],
  ["a role that cannot enter", { SLUICE_ACCESS_ROLES: '{"a@b.c": "producer"}' }, "SLUICE_ACCESS_ROLES"],
  ["a name that is no address", { SLUICE_ACCESS_ROLES: '{"ada": "admin"}' }, "SLUICE_ACCESS_ROLES"],
  ["roles that are no JSON", { SLUICE_ACCESS_ROLES: "admin" }, "SLUICE_ACCESS_ROLES"],
  ["an empty audience", { SLUICE_ACCESS_AUDIENCE: "" }, "SLUICE_ACCESS_AUDIENCE"],
])("%s is refused", async (_, change, name) => {
  await expect(parseSettings({ ...required, ...access, ...change })).rejects.toThrow(name);
});
