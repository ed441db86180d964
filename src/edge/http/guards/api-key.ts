// A key of the API as its owner has it: how it is made, what it looks like, and the hash that is kept of it.

const keyBytes = 32;
const shape = /^sk_[A-Za-z0-9_-]{43}$/;

export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(keyBytes));
  return `sk_${btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")}`;
}

/** What does not look like one is not looked up. */
export function looksLikeKey(text: string): boolean {
  return shape.test(text);
}

export async function digestOf(key: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
}

export function hexOf(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
