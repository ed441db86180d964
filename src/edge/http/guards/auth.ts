// Identifies the caller by the bearer key, and checks what the caller may do. The admin keys of the settings work without the
// database. All other keys are looked up by their hash.
import type { Context } from "hono";
import { isOwnType } from "../../../core/alarms/alarm.ts";
import { SluiceError } from "../../../core/errors.ts";
import type { Role } from "../../../core/key.ts";
import type { Settings } from "../../settings/env.ts";
import type { AppEnv } from "../app-env.ts";
import { digestKey, looksLikeKey, toHex } from "./api-key.ts";
import type { Caller } from "./caller.ts";
import { liveKey } from "./key-cache.ts";
import { checkRate } from "./rate-limit.ts";

/** An admin may call everything. */
export async function requireRole(context: Context<AppEnv>, roles: readonly Role[]): Promise<Caller> {
  const caller = await identify(context);
  if (caller.role === "admin" || roles.includes(caller.role)) return caller;
  throw new SluiceError("forbidden", `a key with the role "${caller.role}" may not do this`);
}

/** A producer's key may be limited to some types. It does not see jobs of other types. */
export function mayUse(context: Context<AppEnv>, type: string): boolean {
  const { types } = context.get("caller");
  return types === null || types.includes(type);
}

export function checkMayUse(context: Context<AppEnv>, type: string): void {
  if (!mayUse(context, type)) throw new SluiceError("forbidden", `this key may not use the type "${type}"`);
}

export function checkMayEnqueue(context: Context<AppEnv>, type: string): void {
  checkMayUse(context, type);
  refuseOwnType(type);
}

/**
 * Jobs of Sluice's own types prove that the queue works. No caller enqueues, claims or cancels them: a caller that
 * completes a canary could hide that drains have stopped.
 */
export function refuseOwnType(type: string): void {
  if (isOwnType(type)) throw new SluiceError("forbidden", `the type "${type}" is reserved for Sluice itself`);
}

/** The dashboard has found its caller already, by a cookie. */
async function identify({ req, env }: Context<AppEnv>): Promise<Caller> {
  if (env.caller) return env.caller;
  const key = /^bearer +(\S+) *$/i.exec(req.header("authorization") ?? "")?.[1];
  if (!key)
    throw new SluiceError("unauthorized", "send the API key in the header Authorization: Bearer <key>");
  const caller = await findCaller(env, await hashOf(key));
  if (!caller) throw new SluiceError("unauthorized", "unknown API key");
  return caller;
}

/** What names a key: here, in the database, and in the dashboard's cookie. Text that is no key is not looked up. */
export interface KeyHash {
  keyHash: string;
  isKey: boolean;
}

export async function hashOf(key: string): Promise<KeyHash> {
  return { keyHash: toHex(await digestKey(key)), isKey: looksLikeKey(key) };
}

export const adminCaller: Caller = { name: "admin", role: "admin", types: null, actor: "admin" };

export async function findCaller(
  env: AppEnv["Bindings"],
  { keyHash, isKey }: KeyHash,
): Promise<Caller | undefined> {
  if (await findAdminKey(env.settings, keyHash)) return adminCaller;
  const apiKey = isKey ? await liveKey(env, keyHash) : undefined;
  if (!apiKey) return undefined;
  await checkRate(env, apiKey);
  const { id, name, role, jobTypes } = apiKey;
  return { name, role, types: jobTypes, actor: `${name} (${id})` };
}

/** Equal hashes are equal keys, and how far two hashes agree says nothing about the keys. */
export async function findAdminKey(
  { adminKeys }: Pick<Settings, "adminKeys">,
  keyHash: string,
): Promise<string | undefined> {
  const hashes = await Promise.all(adminKeys.map(hashOf));
  return adminKeys[hashes.findIndex((hash) => hash.keyHash === keyHash)];
}
