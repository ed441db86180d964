// Signs a request as Standard Webhooks specifies, so that a receiver can check who sent it and when.

/** `whsec_` and the key in base64. While a secret is rotated there are two, since the receiver may have either. */
export type WebhookSecret = string;

export async function signWebhook(message: {
  id: string;
  timestampSeconds: number;
  body: string;
  secrets: readonly WebhookSecret[];
}): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(message.timestampSeconds));
  const signedText = `${message.id}.${timestamp}.${message.body}`;
  const signatures = await Promise.all(
    message.secrets.map(async (secret) => `v1,${await hmac(secret, signedText)}`),
  );
  return {
    "webhook-id": message.id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}

async function hmac(secret: WebhookSecret, text: string): Promise<string> {
  const key = await crypto.subtle.importKey(
    "raw",
    keyBytes(secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["sign"],
  );
  const signature = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}

function keyBytes(secret: WebhookSecret): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(secret.replace(/^whsec_/, "")), (char) => char.charCodeAt(0));
}
