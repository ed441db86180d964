// Who calls, and what they may do: a bearer key. Those of the settings are compared as digests, so that the time taken
// tells nothing of them, and always work; all others are looked up by their hash.
import type { Context, MiddlewareHandler } from "hono";
import { isOwnType } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Role } from "../../../core/key.ts";
import type { AppEnv } from "../app-env.ts";
import { digestOf, hexOf, looksLikeKey } from "./api-key.ts";
import type { Caller } from "./caller.ts";
import { liveKey } from "./key-cache.ts";
import { checkRate } from "./rate-limit.ts";

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
  (["GET", "HEAD"].includes(context.req.method) ? adminsAndViewers : admins)(context, next);

/** A producer's key may be bound to some types: for it there are no jobs of others. */
export function mayUse(context: Context<AppEnv>, type: string): boolean {
  const { types } = context.get("caller");
  return types === null || types.includes(type);
}

export function checkMayUse(context: Context<AppEnv>, type: string): void {
  if (!mayUse(context, type)) throw new SluiceError("forbidden", `the key may not use the type "${type}"`);
}

export function checkMayEnqueue(context: Context<AppEnv>, type: string): void {
  checkMayUse(context, type);
  refuseOwnType(type);
}

/**
 * Jobs of Sluice's own types prove that the queue works. Nobody outside enqueues, claims or cancels them: who could
 * complete a canary could hide that drains have stopped.
 */
export function refuseOwnType(type: string): void {
  if (isOwnType(type)) throw new SluiceError("forbidden", `the type "${type}" is Sluice's own`);
}

async function callerOf(context: Context<AppEnv>): Promise<Caller> {
  const given = /^bearer +(\S+) *$/i.exec(context.req.header("authorization") ?? "")?.[1];
  if (!given) {
    throw new SluiceError("unauthorized", "send the key as: Authorization: Bearer <key>");
  }
  const { ports, settings } = context.env;
  const [digest, adminDigests] = await Promise.all([
    digestOf(given),
    Promise.all(settings.adminKeys.map(digestOf)),
  ]);
  if (adminDigests.some((adminDigest) => isSame(digest, adminDigest)))
    return { name: "admin", role: "admin", types: null, actor: "admin" };
  const key = looksLikeKey(given) ? await liveKey(ports, hexOf(digest)) : undefined;
  if (!key) throw new SluiceError("unauthorized", "the key is unknown");
  await checkRate(ports, key);
  return { name: key.name, role: key.role, types: key.jobTypes, actor: `${key.name} (${key.id})` };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.reduce((difference, byte, index) => difference | (byte ^ (b[index] ?? 0)), 0) === 0;
}
