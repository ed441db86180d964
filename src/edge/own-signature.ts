// Signatures (HMAC-SHA-256) for what this deployment says to itself: calls through its own binding, and the cookies of the
// dashboard. Their secrets are made of the admin key. While it is rotated, a signature by the previous one still counts. A
// message begins with what it is for, so that a signature of one kind never fits another.

const text = new TextEncoder();
const algorithm = { name: "HMAC", hash: "SHA-256" };

/** In base64. */
export async function signWith(secret: string, message: string): Promise<string> {
  const signature = await crypto.subtle.sign("HMAC", await hmacKey(secret), text.encode(message));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}

/** Compares in constant time. */
export async function isSignedBy(
  secrets: readonly string[],
  { message, signature }: { message: string; signature: string },
): Promise<boolean> {
  for (const secret of secrets) {
    const key = await hmacKey(secret);
    if (await crypto.subtle.verify("HMAC", key, decodeBase64(signature), text.encode(message))) return true;
  }
  return false;
}

function hmacKey(secret: string) {
  return crypto.subtle.importKey("raw", text.encode(secret), algorithm, false, ["sign", "verify"]);
}

/** Text that is not base64 becomes an empty signature, which never fits. */
function decodeBase64(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
