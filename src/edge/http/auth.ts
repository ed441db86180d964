// Who calls: a bearer key, compared as digests so that the time taken tells nothing of it.
import type { MiddlewareHandler } from "hono";
import { SluiceError } from "../../core/errors.ts";
import type { AppEnv } from "./app.ts";

export const requireKey: MiddlewareHandler<AppEnv> = async (context, next) => {
  const [scheme, key] = (context.req.header("authorization") ?? "").split(" ");
  if (scheme?.toLowerCase() !== "bearer" || !key) {
    throw new SluiceError("unauthorized", "send the key as: Authorization: Bearer <key>");
  }
  if (!(await isSame(key, context.env.settings.adminKey))) {
    throw new SluiceError("unauthorized", "the key is unknown");
  }
  await next();
};

async function isSame(given: string, expected: string): Promise<boolean> {
  const [a, b] = await Promise.all([digest(given), digest(expected)]);
  return a.reduce((difference, byte, index) => difference | (byte ^ (b[index] ?? 0)), 0) === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
