// Who calls, and what they may do: a bearer key, compared as digests so that the time taken tells nothing of it.
import type { Context, MiddlewareHandler } from "hono";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "./app.ts";

export type Role = "producer" | "worker" | "viewer" | "admin";

export interface Caller {
  name: string;
  role: Role;
  /** The types that it may enqueue; null: all. */
  types: readonly string[] | null;
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

/** A producer's key may be bound to some types. */
export function checkMayEnqueue(context: Context<AppEnv>, type: string): void {
  const { types } = context.get("caller");
  if (types && !types.includes(type))
    throw new SluiceError("forbidden", `the key may not enqueue the type "${type}"`);
}

async function callerOf(context: Context<AppEnv>): Promise<Caller> {
  const [scheme, key] = (context.req.header("authorization") ?? "").split(" ");
  if (scheme?.toLowerCase() !== "bearer" || !key) {
    throw new SluiceError("unauthorized", "send the key as: Authorization: Bearer <key>");
  }
  if (!(await isSame(key, context.env.settings.adminKey))) {
    throw new SluiceError("unauthorized", "the key is unknown");
  }
  return { name: "admin", role: "admin", types: null };
}

async function isSame(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([digest(given), digest(expected)]);
  return a.reduce((difference, byte, index) => difference | (byte ^ (b[index] ?? 0)), 0) === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
