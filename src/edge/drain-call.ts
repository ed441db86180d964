// How a cron round proves to the Worker behind SELF that it may start a drain there: a signature made with the admin key,
// for one queue and one moment. The key itself is not sent: whoever renames the Worker and forgets `service` in
// wrangler.toml would hand it to another Worker, which as it is refuses the call.
//
// A sender signs with each of its admin keys and a receiver tries each of its own, so that while a key is rotated
// isolates with the old and with the new settings understand each other.

const scheme = "Drain";
/** Clocks of two machines differ. A call that is repeated meanwhile starts a drain that the cron would start anyway. */
const validForMs = 60_000;
const text = new TextEncoder();

export async function signDrain(
  adminKeys: readonly string[],
  call: { queue: string; nowMs: number },
): Promise<string> {
  const at = String(call.nowMs);
  const signatures = await Promise.all(
    adminKeys.map(async (key) => {
      const signature = await crypto.subtle.sign("HMAC", await hmacKey(key), messageOf(call.queue, at));
      return btoa(String.fromCharCode(...new Uint8Array(signature)));
    }),
  );
  return [scheme, at, ...signatures].join(" ");
}

export async function isSignedDrain(
  adminKeys: readonly string[],
  call: { queue: string; nowMs: number; authorization: string },
): Promise<boolean> {
  const [given, at = "", ...signatures] = call.authorization.split(" ");
  if (given !== scheme || !(Math.abs(call.nowMs - Number(at)) <= validForMs)) return false;
  const message = messageOf(call.queue, at);
  for (const key of adminKeys) {
    const hmac = await hmacKey(key);
    for (const signature of signatures.slice(0, 2))
      if (await crypto.subtle.verify("HMAC", hmac, bytesOf(signature), message)) return true;
  }
  return false;
}

function hmacKey(adminKey: string) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", text.encode(adminKey), algorithm, false, ["sign", "verify"]);
}

function messageOf(queue: string, at: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.encode(`sluice drain\n${queue}\n${at}`));
}

/** What is no base64 is no signature either. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
