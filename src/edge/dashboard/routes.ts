// The dashboard: its pages, its actions, sign-in and sign-out, and its assets. Everything else about it is in src/dashboard.
import { type Context, Hono } from "hono";
import { SluiceError } from "../../core/errors.ts";
import { findAction } from "../../dashboard/actions.tsx";
import { assets } from "../../dashboard/assets/bundled.ts";
import { type Theme, themes } from "../../dashboard/layout.tsx";
import type { Page, PageRequest, Refusal } from "../../dashboard/page.ts";
import { pages } from "../../dashboard/pages.ts";
import { SignInPage, TryAgainPage } from "../../dashboard/sign-in-page.tsx";
import type { AppEnv } from "../http/app-env.ts";
import type { Caller } from "../http/guards/caller.ts";
import { allowOnly } from "../http/operation-routes.ts";
import { accessHeader } from "./access.ts";
import { answerError, answerHtml, answerPage, frameOf, isRefresh, keepTheme, viewerOf } from "./answer.ts";
import { countForMenu } from "./count-for-menu.ts";
import { findVisitor } from "./find-visitor.ts";
import { readForm, safePath } from "./form.ts";
import { pageDatabase } from "./page-database.ts";
import { runAction } from "./run-action.ts";
import { requireSameOrigin } from "./same-origin.ts";
import { endSession } from "./session.ts";
import { signIn } from "./sign-in.ts";

type Call = (
  request: Request,
  env: AppEnv["Bindings"],
  context: Context["executionCtx"],
) => Promise<Response> | Response;

/** `callApi` is the HTTP API itself: actions are requests to it. */
export function createDashboard(callApi: Call): Hono<AppEnv> {
  const dashboard = new Hono<AppEnv>();
  dashboard.onError((error, context) => answerError(context, error));
  const unsafe = ["/sign-in", "/sign-out", "/theme", "/actions/:action"];
  for (const path of unsafe) dashboard.use(path, requireSameOrigin);
  for (const { path, contentType, body } of Object.values(assets)) {
    const headers = { "content-type": contentType, "cache-control": "public, max-age=31536000, immutable" };
    dashboard.get(path, () => new Response(body, { headers })).all(allowOnly("GET"));
  }
  dashboard.post("/sign-in", signIn);
  dashboard.post("/sign-out", (context) => {
    endSession(context);
    // Access has a cookie of its own, which only Access can remove.
    return context.redirect(context.req.header(accessHeader) ? "/cdn-cgi/access/logout" : "/", 303);
  });
  dashboard.post("/theme", changeTheme);
  dashboard.post("/actions/:action", async (context) => {
    const caller = await findVisitor(context);
    if (!caller) return context.redirect("/", 302);
    const id = context.req.param("action");
    const action = findAction(id);
    if (!action) throw new SluiceError("not_found", `there is no action "${id}"`);
    const showAgain = (path: string, refusal: Refusal) => {
      const request = new Request(new URL(path, context.req.url), { headers: context.req.raw.headers });
      return dashboard.fetch(request, { ...context.env, refusal }, context.executionCtx);
    };
    return runAction(context, { id, action, caller, callApi, showAgain });
  });
  for (const path of unsafe) dashboard.all(path, allowOnly("POST"));
  for (const page of pages)
    dashboard.get(page.path, (context) => showPage(context, page)).all(allowOnly("GET"));
  return dashboard;
}

async function showPage(context: Context<AppEnv>, page: Page): Promise<Response> {
  const caller = await findVisitor(context);
  if (!caller) return askToSignIn(context);
  const request = toPageRequest(context, caller);
  // A tab that is left open must not wake a database that sleeps. Whoever opens a page does.
  if (isRefresh(context) && (await request.asleepSince())) return context.body(null, 204);
  const { db, counts } = countForMenu(request.db);
  const content = await page.render({ ...request, db });
  const { section } = page;
  return answerPage(context, { caller, section, content, counts: counts(), isRefreshed: !request.refusal });
}

function askToSignIn(context: Context<AppEnv>): Response | Promise<Response> {
  const { pathname, search } = new URL(context.req.url);
  // A page that refreshes itself leaves for the sign-in page as a whole.
  if (isRefresh(context)) return new Response(null, { status: 401, headers: { "hx-redirect": "/" } });
  if (pathname !== "/") return context.redirect(`/?to=${encodeURIComponent(pathname + search)}`, 302);
  const to = safePath(context, context.req.query("to"));
  const frame = frameOf(context);
  const isFromElsewhere = context.req.header("sec-fetch-site") === "cross-site";
  if (!isFromElsewhere) return answerHtml(context, SignInPage({ frame, to }));
  context.header("refresh", `0;url=${to}`);
  return answerHtml(context, TryAgainPage({ frame, to }));
}

function toPageRequest(context: Context<AppEnv>, caller: Caller): PageRequest {
  const { ports, settings, alarmClock, refusal } = context.env;
  const url = new URL(context.req.url);
  return {
    db: pageDatabase(ports.db),
    registry: ports.registry,
    now: new Date(ports.clock.nowMs()),
    settings,
    viewer: viewerOf(caller),
    refusal,
    url,
    query: url.searchParams,
    param: (name) => context.req.param(name) ?? "",
    async asleepSince() {
      if (settings.maxSleepMinutes === 0) return null;
      const reading = await alarmClock.read();
      if (reading === null || reading === "unreachable" || !reading.isAsleep) return null;
      return reading.state.idleSinceMs === null ? null : new Date(reading.state.idleSinceMs);
    },
  };
}

async function changeTheme(context: Context<AppEnv>): Promise<Response> {
  const form = await readForm(context);
  const theme = form.get("theme") as Theme;
  if (!themes.includes(theme)) throw new SluiceError("request_invalid", "the theme is auto, light or dark");
  keepTheme(context, theme);
  return context.redirect(safePath(context, context.req.header("referer")), 303);
}
