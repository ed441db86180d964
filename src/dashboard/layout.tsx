// The frame of every page: head, environment strip, menu, and the main part, which the script refreshes.
import type { Child } from "hono/jsx";
import type { MenuCounts } from "../core/sql/menu-counts.ts";
import { assets } from "./assets/bundled.ts";
import { Logo } from "./logo.tsx";
import { KeysHelp, Nav } from "./nav.tsx";
import type { Content, Html, Section, Viewer } from "./page.ts";
import { type Flash, FlashMessage } from "./parts/flash.tsx";
import { absolute } from "./parts/numbers.ts";

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

export interface Frame {
  theme: Theme;
  /** Shown to everybody, also before they sign in. */
  environment: string;
  isProduction: boolean;
  /** When the page was made. */
  now: Date;
}

/** The script reads attributes of htmx from here, and an opened <details> stays open when the page is refreshed. */
const htmxConfig = JSON.stringify({ morphIgnore: ["data-htmx-powered", "open"], history: false });

export function Document({ title, frame, children }: { title: string; frame: Frame; children: Child }) {
  return (
    <html lang="en" data-theme={frame.theme === "auto" ? undefined : frame.theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="htmx-config" content={htmxConfig} />
        <title>{`${title} · Sluice ${frame.environment}`}</title>
        <link rel="icon" href={assets.favicon.path} type="image/svg+xml" />
        <link rel="stylesheet" href={assets.style.path} />
        <script src={assets.htmx.path} defer />
        <script src={assets.app.path} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {children}
      </body>
    </html>
  );
}

interface LayoutProps {
  frame: Frame;
  viewer: Viewer;
  section: Section | undefined;
  /** Where the page is read again from. Undefined: it is not refreshed. */
  refreshUrl?: string | undefined;
  flash?: Flash | undefined;
  content: Content;
  counts?: MenuCounts | undefined;
}

export function Layout(props: LayoutProps): Html {
  const { frame, viewer, section, refreshUrl, flash, content, counts } = props;
  return (
    <Document title={content.title} frame={frame}>
      <header>
        <div class={`env${frame.isProduction ? "" : " is-calm"}`}>
          <b>{frame.environment}</b>
          <span class="push">
            <span id="at">{absolute(frame.now).slice(11)}</span>
            <span class="row" id="live" hidden>
              <span class="pulse" />
              <span />
            </span>
          </span>
        </div>
        <div class="bar-top">
          <Brand />
          <button class="btn" type="button" popovertarget="menu">
            Menu
          </button>
        </div>
      </header>
      <div class="app">
        <aside class="side" id="menu" aria-label="Menu" popover="auto">
          <Brand />
          <Nav current={section} counts={counts} />
          <SideFoot frame={frame} viewer={viewer} />
        </aside>
        <main id="main" {...(refreshUrl === undefined ? {} : refreshing(refreshUrl))}>
          {flash ? <FlashMessage {...flash} /> : null}
          <Head content={content} />
          {content.body}
        </main>
      </div>
      <KeysHelp />
    </Document>
  );
}

/** The script triggers the event, but only while somebody looks. */
function refreshing(url: string) {
  return {
    "hx-get": url,
    "hx-trigger": "refresh",
    "hx-select": "#main > *",
    "hx-swap": "innerMorph",
    "hx-target": "this",
    "hx-select-oob": "#nav:innerMorph,#at:innerHTML",
  };
}

function Head({ content: { title, facts, tools, crumbs } }: { content: Content }) {
  return (
    <div class="head">
      {crumbs ? <p class="crumb">{crumbs}</p> : null}
      <h1>{title}</h1>
      {facts}
      {tools ? <div class="push">{tools}</div> : null}
    </div>
  );
}

function Brand() {
  return (
    <a class="brand" href="/">
      <Logo />
    </a>
  );
}

function SideFoot({ frame, viewer }: { frame: Frame; viewer: Viewer }) {
  return (
    <div class="side-foot">
      <form method="post" action="/theme">
        <div class="seg" role="group" aria-label="Theme">
          {themes.map((theme) => (
            <button type="submit" name="theme" value={theme} aria-pressed={theme === frame.theme}>
              {theme.replace(/^./, (sign) => sign.toUpperCase())}
            </button>
          ))}
        </div>
      </form>
      <div>
        <button class="btn is-quiet" type="button" popovertarget="keys-help">
          <kbd>?</kbd> Keyboard
        </button>
      </div>
      <form method="post" action="/sign-out">
        <p class="muted">
          <span class="strong">{viewer.name}</span> ({viewer.role})
        </p>
        <button class="link" type="submit">
          Sign out
        </button>
      </form>
    </div>
  );
}
