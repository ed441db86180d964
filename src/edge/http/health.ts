// GET /health: is the queue able to work. Open to all, so it says what is wrong and nothing else.
import { Hono } from "hono";
import { ping } from "../../core/sql/index.ts";
import type { AppEnv } from "./app.ts";

export const health = new Hono<AppEnv>();

health.get("/", async (context) => {
  const { db } = context.env.queue;
  const database = await db.run(ping()).then(
    () => "ok" as const,
    () => "unavailable" as const,
  );
  return context.json({ status: database, checks: { database } }, database === "ok" ? 200 : 503);
});
