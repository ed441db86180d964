// Stands for the other systems: a mail service, a list of contacts, and a news page that checks signatures. It prints what
// it gets, one line of JSON for each. Run it with `npm run outside`.
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { Webhook } from "standardwebhooks";
import type { Mail } from "./src/mail.ts";

const { NEWS_SECRET = "" } = parseEnv(readFileSync(".dev.vars", "utf8"));
const contacts = new Set<string>();
const print = (line: object) => console.log(JSON.stringify(line));
const outside = new Hono();

outside.post("/mail", async (c) => {
  for (const mail of await c.req.json<Mail[]>()) print({ mail });
  return c.body(null, 202);
});
outside.get("/contacts/:id", (c) => c.body(null, contacts.has(c.req.param("id")) ? 200 : 404));
outside.put("/contacts/:id", (c) => {
  contacts.add(c.req.param("id"));
  print({ contact: c.req.param("id") });
  return c.body(null, 204);
});
outside.post("/news", async (c) => {
  print({ news: new Webhook(NEWS_SECRET).verify(await c.req.text(), c.req.header()) });
  return c.json({ shown: true });
});

serve({ fetch: outside.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 8789) });
