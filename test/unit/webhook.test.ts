// Webhooks: signatures by the Standard Webhooks rules, and the header Retry-After.
import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { retryAfterSeconds } from "../../src/queue/outgoing/answer.ts";
import { signWebhook } from "../../src/queue/outgoing/sign-webhook.ts";

const secretOf = (text: string) => `whsec_${Buffer.from(text).toString("base64")}`;

test("a request is signed by the Standard Webhooks rules, with both secrets during a rotation", async () => {
  const body = '{"data":"€"}';
  const headers = await signWebhook({
    id: "job-1",
    timestampSeconds: 1_700_000_000.9,
    body,
    secrets: [secretOf("old"), secretOf("new")],
  });
  const expected = (key: string) =>
    `v1,${createHmac("sha256", key).update(`job-1.1700000000.${body}`).digest("base64")}`;
  expect(headers).toEqual({
    "webhook-id": "job-1",
    "webhook-timestamp": "1700000000",
    "webhook-signature": `${expected("old")} ${expected("new")}`,
  });
});

test("Retry-After can be seconds or a date, and is bounded", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  expect(retryAfterSeconds("120", now)).toBe(120);
  expect(retryAfterSeconds("Thu, 01 Jan 2026 00:01:00 GMT", now)).toBe(60);
  expect(retryAfterSeconds("Thu, 01 Jan 2025 00:01:00 GMT", now)).toBe(0);
  expect(retryAfterSeconds("99999999", now)).toBe(86_400);
  expect(retryAfterSeconds("soon", now)).toBeUndefined();
  expect(retryAfterSeconds(null, now)).toBeUndefined();
});
