// Reads a form, and checks where to go afterwards.
import type { Context } from "hono";
import { SluiceError } from "../../core/errors.ts";
import { readText } from "../http/codec/body.ts";

/** More than any body that an action makes of it. */
const maxBytes = 2 * 1024 * 1024;

export async function readForm(context: Context): Promise<URLSearchParams> {
  const type = context.req.header("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\b/i.test(type))
    throw new SluiceError("request_invalid", "send a form (application/x-www-form-urlencoded)");
  return new URLSearchParams(await readText(context.req.raw, maxBytes));
}

/** A path of this site, never a URL that leads elsewhere. */
export function safePath(context: Context, to: string | null | undefined): string {
  const { origin } = new URL(context.req.url);
  const url = URL.parse(to ?? "/", origin);
  return url?.origin === origin ? url.pathname + url.search : "/";
}
