// Headers of every answer: browsers and proxies must not store it, and must not guess another content type.
import type { MiddlewareHandler } from "hono";

export const guardAnswer: MiddlewareHandler = async (context, next) => {
  await next();
  context.res.headers.set("cache-control", "no-store");
  context.res.headers.set("x-content-type-options", "nosniff");
};
