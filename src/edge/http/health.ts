// GET /health: is the queue able to work. Open to all, so it says what is wrong in a word and nothing else; and it answers
// in two seconds, whatever the database does.
import { Hono } from "hono";
import type { HealthResponse } from "../../contract/operations.ts";
import { checkRounds } from "../../core/policy/health.ts";
import { ping } from "../../core/sql/index.ts";
import type { Queue } from "../../queue/ports.ts";
import type { AppEnv } from "./app.ts";

const answerWithinMs = 1_500;
const well: readonly string[] = ["ok", "starting"];

export const health = new Hono<AppEnv>();

health.get("/", async (context) => {
  const checks = await checksOf(context.env.queue);
  const isWell = Object.values(checks).every((check) => well.includes(check));
  const status = isWell ? "ok" : checks.database === "ok" ? "failing" : "unavailable";
  return context.json({ status, checks } satisfies HealthResponse, isWell ? 200 : 503);
});

/** Each is "ok", "starting", or a word for what is wrong. */
async function checksOf(queue: Queue): Promise<HealthResponse["checks"]> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), answerWithinMs);
  const found = await Promise.race([queue.db.run(ping()), late]).catch(() => undefined);
  clearTimeout(timer);
  const [heartbeats] = found ?? [];
  return heartbeats ? { database: "ok", ...checkRounds(heartbeats) } : { database: "unavailable" };
}
