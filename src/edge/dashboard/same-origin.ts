// Unsafe methods come only from pages of this site: another site must not use the cookie of somebody who visits it.
import type { MiddlewareHandler } from "hono";
import { SluiceError } from "../../core/errors.ts";

export const requireSameOrigin: MiddlewareHandler = async ({ req }, next) => {
  if (!["GET", "HEAD"].includes(req.method) && !isSameOrigin(req.raw))
    throw new SluiceError("forbidden", "this request does not come from a page of this dashboard");
  await next();
};

/** Old browsers do not send Sec-Fetch-Site, but the origin. */
function isSameOrigin({ headers, url }: Request): boolean {
  const site = headers.get("sec-fetch-site");
  return site === null ? headers.get("origin") === new URL(url).origin : site === "same-origin";
}
