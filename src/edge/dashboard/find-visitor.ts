// Who looks at the dashboard: by the cookie of a sign-in, or by Cloudflare Access.
import type { Context } from "hono";
import type { AppEnv } from "../http/app-env.ts";
import type { Caller } from "../http/guards/caller.ts";
import { findAccess } from "./access.ts";
import { findSession } from "./session.ts";

/** A sign-in counts before Access: whoever signs in wants the role of that key. */
export async function findVisitor(context: Context<AppEnv>): Promise<Caller | undefined> {
  return (await findSession(context)) ?? findAccess(context);
}
