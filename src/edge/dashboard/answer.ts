// HTML answers: their headers, the frame, and errors as pages.
import type { Context } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import type { MenuCounts } from "../../core/sql/menu-counts.ts";
import { ErrorPage, errorContent } from "../../dashboard/error-page.tsx";
import { type Frame, Layout, type Theme, themes } from "../../dashboard/layout.tsx";
import type { Content, Html, Section, Viewer } from "../../dashboard/page.ts";
import { decodeFlash, encodeFlash, type Flash } from "../../dashboard/parts/flash.tsx";
import type { AppEnv } from "../http/app-env.ts";
import { problemOf } from "../http/codec/problem.ts";
import type { Caller } from "../http/guards/caller.ts";
import { findVisitor } from "./find-visitor.ts";
import { cookieOptions } from "./session.ts";

const flashCookie = "__Host-sluice-flash";
const themeCookie = "__Host-sluice-theme";
const yearSeconds = 365 * 24 * 60 * 60;

/** Nothing is loaded from elsewhere, no script or style stands in a page, and no other site shows the page in a frame. */
const policy = [
  "default-src 'none'",
  ...["script-src", "style-src", "img-src", "connect-src", "form-action"].map((name) => `${name} 'self'`),
  ...["frame-ancestors", "base-uri"].map((name) => `${name} 'none'`),
].join("; ");

export function answerHtml(context: Context, page: Html, status = 200): Promise<Response> {
  context.header("content-security-policy", policy);
  context.header("referrer-policy", "same-origin");
  context.header("cross-origin-opener-policy", "same-origin");
  context.status(status as never);
  return Promise.resolve(page).then((text) => context.html(`<!doctype html>${text}`));
}

interface PageAnswer {
  caller: Caller;
  section?: Section | undefined;
  content: Content;
  counts?: MenuCounts | undefined;
  isRefreshed?: boolean;
  status?: number;
}

export function answerPage(context: Context<AppEnv>, answer: PageAnswer): Promise<Response> {
  const { caller, section, content, counts, isRefreshed, status } = answer;
  const url = new URL(context.req.url);
  const { refusal } = context.env;
  const page = Layout({
    frame: frameOf(context),
    viewer: viewerOf(caller),
    section,
    refreshUrl: isRefreshed ? url.pathname + url.search : undefined,
    flash: refusal ? { kind: "failed", text: refusal.text } : takeFlash(context),
    content,
    counts,
  });
  return answerHtml(context, page, refusal?.status ?? status);
}

/** The script sends it, for a page that is open already. */
export function isRefresh(context: Context<AppEnv>): boolean {
  return context.req.header("hx-request") === "true";
}

export function viewerOf({ name, role }: Caller): Viewer {
  return { name, role, mayChange: role === "admin" };
}

/** A name that begins so is no production. */
const calmNames = /^(local|dev|test|demo|preview|staging)/i;

export function frameOf(context: Context<AppEnv>): Frame {
  const { environment } = context.env.settings;
  const theme = getCookie(context, themeCookie) as Theme | undefined;
  return {
    theme: theme && themes.includes(theme) ? theme : "auto",
    environment: environment ?? "",
    isProduction: environment !== undefined && !calmNames.test(environment),
    now: new Date(context.env.ports.clock.nowMs()),
  };
}

export function keepTheme(context: Context<AppEnv>, theme: Theme): void {
  setCookie(context, themeCookie, theme, { ...cookieOptions, maxAge: yearSeconds });
}

export function leaveFlash(context: Context<AppEnv>, flash: Flash): void {
  setCookie(context, flashCookie, encodeFlash(flash), { ...cookieOptions, maxAge: 60 });
}

/** It is shown once. */
function takeFlash(context: Context<AppEnv>): Flash | undefined {
  if (isRefresh(context)) return undefined;
  const flash = decodeFlash(getCookie(context, flashCookie));
  if (flash) setCookie(context, flashCookie, "", { ...cookieOptions, maxAge: 0 });
  return flash;
}

/** The error as a page: with the menu for somebody who has signed in, unless the database is what fails. */
export async function answerError(context: Context<AppEnv>, error: unknown): Promise<Response> {
  const { method, path } = context.req;
  const { body, headers } = problemOf(error, { method, route: path });
  headers.forEach((value, name) => {
    context.header(name, value);
  });
  const mayHelp = body.status >= 500 && method === "GET";
  const content = errorContent(body, mayHelp ? path : undefined);
  const { status } = body;
  const caller = await findVisitor(context).catch(() => undefined);
  // A page that is too slow would be as slow again.
  const isRefreshed = mayHelp && !body.type.endsWith(":page_too_slow");
  if (!isRefreshed) context.header("hx-reswap", "innerMorph"); // app.js keeps an open page through any other error
  if (caller) return answerPage(context, { caller, content, isRefreshed, status });
  return answerHtml(context, ErrorPage({ frame: frameOf(context), content }), status);
}
