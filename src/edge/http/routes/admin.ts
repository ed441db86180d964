// The admin's routes: each kind of thing in a file of its own. An admin may do everything here, a viewer may look.
import { Hono } from "hono";
import type { AppEnv } from "../app-env.ts";
import { requireAdmin } from "../guards/auth.ts";
import { alarms } from "./alarms.ts";
import { audit } from "./audit.ts";
import { deadLetters } from "./dead-letters.ts";
import { jobTypes } from "./job-types.ts";
import { keys } from "./keys.ts";
import { queues } from "./queues.ts";

export const admin = new Hono<AppEnv>();
admin.use(requireAdmin);
admin
  .route("/dlq", deadLetters)
  .route("/job-types", jobTypes)
  .route("/queues", queues)
  .route("/keys", keys)
  .route("/audit", audit)
  .route("/alarms", alarms);
