// Sign-in with an API key. Only people who look at the queue may enter: not the keys of producers and workers.
import type { Context } from "hono";
import { SignInPage } from "../../dashboard/sign-in-page.tsx";
import type { AppEnv } from "../http/app-env.ts";
import { findCaller, hashOf } from "../http/guards/auth.ts";
import { checkRate } from "../http/guards/rate-limit.ts";
import { answerHtml, frameOf } from "./answer.ts";
import { readForm, safePath } from "./form.ts";
import { startSession } from "./session.ts";

/** Of one address, for each isolate. */
const triesPerSecond = 10;

export async function signIn(context: Context<AppEnv>): Promise<Response> {
  const form = await readForm(context);
  const address = context.req.header("cf-connecting-ip") ?? "";
  const counted = { id: `sign-in ${address}`, rateLimitPerSecond: triesPerSecond };
  await checkRate(context.env, counted, "your address");
  const to = safePath(context, form.get("to"));
  const hash = await hashOf((form.get("key") ?? "").trim());
  const caller = await findCaller(context.env, hash);
  const refuse = (error: string, status: number) =>
    answerHtml(context, SignInPage({ frame: frameOf(context), error, to }), status);
  if (!caller) return refuse("No such key: check it, or ask whoever gave it to you.", 401);
  if (caller.role !== "viewer" && caller.role !== "admin")
    return refuse(
      `This key has the role ${caller.role}. The dashboard takes the roles viewer and admin.`,
      403,
    );
  if (!keepsSecureCookies(new URL(context.req.url)))
    return refuse("Use https: browsers keep the cookie of a sign-in only there and on localhost.", 400);
  await startSession(context, hash.keyHash);
  return context.redirect(to, 303);
}

function keepsSecureCookies({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
