// Who calls, and what they may do: a bearer key. Those of the settings are compared as digests, so that the time taken
// tells nothing of them, and always work; all others are looked up by their hash.
import type { Context, MiddlewareHandler } from "hono";
import { SluiceError } from "../../core/errors.ts";
import type { Role } from "../../core/key.ts";
import { digestOf, hexOf, looksLikeKey } from "./api-key.ts";
import type { AppEnv } from "./app.ts";
import { liveKey } from "./key-cache.ts";
import { checkRate } from "./rate-limit.ts";

export interface Caller {
  name: string;
  role: Role;
  /** The types that it may enqueue; null: all. */
  types: readonly string[] | null;
  /** As the audit names it: of keys with one name each is its own. */
  actor: string;
}

/** An admin may do everything. */
export function requireRole(...roles: readonly Role[]): MiddlewareHandler<AppEnv> {
  return async (context, next) => {
    const caller = await callerOf(context);
    if (caller.role !== "admin" && !roles.includes(caller.role)) {
      throw new SluiceError("forbidden", `a key with the role "${caller.role}" may not do this`);
    }
    context.set("caller", caller);
    await next();
  };
}

const admins = requireRole();
const adminsAndViewers = requireRole("viewer");

/** An admin, and for a look also a viewer. */
export const requireAdmin: MiddlewareHandler<AppEnv> = (context, next) =>
  (context.req.method === "GET" ? adminsAndViewers : admins)(context, next);

/** A producer's key may be bound to some types. */
export function checkMayEnqueue(context: Context<AppEnv>, type: string): void {
  const { types } = context.get("caller");
  if (types && !types.includes(type))
    throw new SluiceError("forbidden", `the key may not enqueue the type "${type}"`);
}

async function callerOf(context: Context<AppEnv>): Promise<Caller> {
  const [scheme, given] = (context.req.header("authorization") ?? "").split(" ");
  if (scheme?.toLowerCase() !== "bearer" || !given) {
    throw new SluiceError("unauthorized", "send the key as: Authorization: Bearer <key>");
  }
  const { queue, settings } = context.env;
  const [digest, adminDigests] = await Promise.all([
    digestOf(given),
    Promise.all(settings.adminKeys.map(digestOf)),
  ]);
  if (adminDigests.some((adminDigest) => isSame(digest, adminDigest)))
    return { name: "admin", role: "admin", types: null, actor: "admin" };
  const key = looksLikeKey(given) ? await liveKey(queue, hexOf(digest)) : undefined;
  if (!key) throw new SluiceError("unauthorized", "the key is unknown");
  await checkRate(queue, key);
  return { name: key.name, role: key.role, types: key.jobTypes, actor: `${key.name} (${key.id})` };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.reduce((difference, byte, index) => difference | (byte ^ (b[index] ?? 0)), 0) === 0;
}
