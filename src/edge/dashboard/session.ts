// The cookie of a signed-in browser. It names the key by its hash and says when it ends, and it is signed. The key is looked
// up at every request, so the cookie dies with its key. An admin key of the settings is not named: the cookie is signed with
// that key, and dies when the settings no longer have it.
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { AppEnv } from "../http/app-env.ts";
import { adminCaller, findAdminKey, findCaller } from "../http/guards/auth.ts";
import type { Caller } from "../http/guards/caller.ts";
import { isSignedBy, signWith } from "../own-signature.ts";
import type { Settings } from "../settings/env.ts";

const name = "__Host-sluice";
/** No hash looks like this. */
const adminName = "admin";
const lifeSeconds = 12 * 60 * 60;
/** Browsers accept Secure on http://localhost and http://127.0.0.1 too, which they trust. */
export const cookieOptions = { path: "/", secure: true, httpOnly: true, sameSite: "Strict" } as const;

export async function startSession(context: Context<AppEnv>, keyHash: string): Promise<void> {
  const { settings, ports } = context.env;
  const adminKey = await findAdminKey(settings, keyHash);
  const keyName = adminKey ? adminName : keyHash;
  const endsAt = String(Math.floor(ports.clock.nowMs() / 1000) + lifeSeconds);
  const secret = secretOf(settings, adminKey ?? settings.adminKeys[0] ?? "");
  const signature = await signWith(secret, toMessage(keyName, endsAt));
  setCookie(context, name, [keyName, endsAt, signature].join("."), { ...cookieOptions, maxAge: lifeSeconds });
}

export function endSession(context: Context<AppEnv>): void {
  deleteCookie(context, name, cookieOptions);
}

/** Undefined if there is no cookie, or if it is forged, too old or of a key that is gone. */
export async function findSession(context: Context<AppEnv>): Promise<Caller | undefined> {
  const [keyName = "", endsAt = "", signature = ""] = getCookie(context, name)?.split(".") ?? [];
  const { settings, ports } = context.env;
  if (!(Number(endsAt) * 1000 > ports.clock.nowMs())) return undefined;
  const message = toMessage(keyName, endsAt);
  const secrets = settings.adminKeys.map((adminKey) => secretOf(settings, adminKey));
  if (!(await isSignedBy(secrets, { message, signature }))) return undefined;
  return keyName === adminName ? adminCaller : findCaller(context.env, { keyHash: keyName, isKey: true });
}

/**
 * A person may have chosen the admin key. Whoever steals a cookie must not find the key by trying words. The address of
 * Hyperdrive does not help: it may differ from isolate to isolate.
 */
function secretOf({ databaseUrl }: Settings, adminKey: string): string {
  return `${adminKey}\n${databaseUrl ?? ""}`;
}

function toMessage(keyName: string, endsAt: string): string {
  return `sluice session\n${keyName}\n${endsAt}`;
}
