// The text of an API key: how it is made, what it looks like, and its hash, which is all that the database stores.

const keyBytes = 32;
const shape = /^sk_[A-Za-z0-9_-]{43}$/;

export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(keyBytes));
  return `sk_${btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")}`;
}

/** Other text is not looked up in the database. */
export function looksLikeKey(text: string): boolean {
  return shape.test(text);
}

export async function digestKey(key: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
}

export function toHex(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
