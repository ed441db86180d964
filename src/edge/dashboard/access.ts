// Cloudflare Access: it puts a signed token into every request that it lets through. The token is verified against the keys
// of the team, and its e-mail address decides the role. A header that Access did not sign is worth nothing.
import type { Context } from "hono";
import * as z from "zod";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "../http/app-env.ts";
import type { Caller } from "../http/guards/caller.ts";
import type { AccessKey, AccessSettings } from "../settings/access.ts";

export const accessHeader = "cf-access-jwt-assertion";
const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
/** The clocks of two machines differ. */
const leewaySeconds = 60;
/** Access replaces its keys every few weeks, and announces a new one before it signs with it. */
const keepKeysMs = 60 * 60 * 1000;
/** A token with an unknown key may be of a new key. So often at most the keys are read for one. */
const minReadMs = 1_000;
const maxBytes = 100_000;
const timeoutMs = 3_000;

const tokenHeader = z.object({ alg: z.literal("RS256"), kid: z.string() });
const tokenClaims = z.object({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: z.number(),
  nbf: z.number().optional(),
  email: z.string(),
});
const keySet = z.object({
  keys: z.array(z.object({ kid: z.string(), kty: z.literal("RSA"), n: z.string(), e: z.string() })),
});

/** Undefined if the deployment does not use Access, or the request has no valid token. */
export async function findAccess(context: Context<AppEnv>): Promise<Caller | undefined> {
  const { access } = context.env.settings;
  const token = context.req.header(accessHeader);
  if (!access || !token) return undefined;
  const email = await verify(context.env, access, token);
  if (email === undefined) return undefined;
  const role = access.roles.get(email) ?? access.roles.get(email.replace(/^[^@]*/, "*"));
  if (!role)
    throw new SluiceError("forbidden", `${email} has no role here: SLUICE_ACCESS_ROLES decides who has one`);
  return { name: email, role, types: null, actor: `${email} (Access)` };
}

/** The e-mail address in the token. */
async function verify(
  env: AppEnv["Bindings"],
  { teamUrl, audience }: AccessSettings,
  token: string,
): Promise<string | undefined> {
  const [head = "", body = "", signature = ""] = token.split(".");
  const header = tokenHeader.safeParse(decodeJson(head));
  const claims = tokenClaims.safeParse(decodeJson(body));
  if (!header.success || !claims.success) return undefined;
  const { iss, aud, exp, nbf = 0, email } = claims.data;
  const nowSeconds = env.ports.clock.nowMs() / 1000;
  const isCurrent = nowSeconds < exp + leewaySeconds && nowSeconds > nbf - leewaySeconds;
  if (iss !== teamUrl || ![aud].flat().includes(audience) || !isCurrent) return undefined;
  const key = await findKey(env, teamUrl, header.data.kid);
  const signed = Uint8Array.from(new TextEncoder().encode(`${head}.${body}`));
  return key && (await isSigned(key, decodeBytes(signature), signed)) ? email.toLowerCase() : undefined;
}

async function isSigned(
  { kty, n, e }: AccessKey,
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const key = await crypto.subtle.importKey("jwk", { kty, n, e }, algorithm, false, ["verify"]);
  return crypto.subtle.verify(algorithm, key, signature, signed);
}

/** The isolate remembers the keys. */
async function findKey(
  env: AppEnv["Bindings"],
  teamUrl: string,
  kid: string,
): Promise<AccessKey | undefined> {
  const { isolate, ports } = env;
  const known = isolate.accessKeys;
  const find = () => isolate.accessKeys?.keys.find((key) => key.kid === kid);
  const ageMs = ports.clock.nowMs() - (known?.readAtMs ?? 0);
  if (known && ageMs < (find() ? keepKeysMs : minReadMs)) return find();
  try {
    isolate.accessKeys = { keys: await readKeys(env, teamUrl), readAtMs: ports.clock.nowMs() };
  } catch (error) {
    if (!find()) throw error; // a key that was good an hour ago is good enough until they can be read again
  }
  return find();
}

async function readKeys({ sender }: AppEnv["Bindings"], teamUrl: string): Promise<AccessKey[]> {
  const url = `${teamUrl}/cdn-cgi/access/certs`;
  try {
    const { json = "" } = await sender.send({ method: "GET", url, timeoutMs, maxJsonBytes: maxBytes });
    return keySet.parse(JSON.parse(json)).keys;
  } catch (cause) {
    throw new SluiceError("access_unavailable", "the keys of Cloudflare Access cannot be read", { cause });
  }
}

function decodeJson(base64Url: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(decodeBytes(base64Url)));
  } catch {
    return undefined;
  }
}

/** Text that is not base64 becomes nothing, which no signature fits. */
function decodeBytes(base64Url: string): Uint8Array<ArrayBuffer> {
  try {
    const text = atob(base64Url.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(text, (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
