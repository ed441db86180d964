// Headers of every answer: browsers and proxies must not guess another content type, and must not store the answer. Only the
// dashboard's assets say otherwise.
import type { MiddlewareHandler } from "hono";

export const guardAnswer: MiddlewareHandler = async (context, next) => {
  await next();
  if (!context.res.headers.has("cache-control")) context.res.headers.set("cache-control", "no-store");
  context.res.headers.set("x-content-type-options", "nosniff");
};
