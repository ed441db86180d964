// What every answer says to browsers and proxies: it is nobody else's to keep, and it is what its content type says.
import type { MiddlewareHandler } from "hono";

export const guardAnswer: MiddlewareHandler = async (context, next) => {
  await next();
  context.res.headers.set("cache-control", "no-store");
  context.res.headers.set("x-content-type-options", "nosniff");
};
