// The pages for people who are not signed in: the form, and an error that leads nowhere else.
import type { Child } from "hono/jsx";
import { Document, type Frame } from "./layout.tsx";
import { Logo } from "./logo.tsx";
import type { Html } from "./page.ts";

interface SignInProps {
  frame: Frame;
  /** Why the last try failed. */
  error?: string | undefined;
  /** Where to go afterwards. */
  to: string;
}

export function SignInPage({ frame, error, to }: SignInProps): Html {
  return (
    <Outside frame={frame} title="Sign in">
      <div class="card">
        <form class="pad stack" method="post" action="/sign-in">
          <h1>Sign in</h1>
          {error ? (
            <p class="t-dead" id="fault" role="alert">
              {error}
            </p>
          ) : null}
          <input type="hidden" name="to" value={to} />
          <div class="field">
            <label for="key">API key</label>
            <input
              id="key"
              name="key"
              type="password"
              autocomplete="current-password"
              autofocus
              required
              aria-describedby={error ? "fault kh" : "kh"}
            />
            <p class="small muted" id="kh">
              A key with the role viewer or admin. A signed cookie names it for 12 hours.
            </p>
          </div>
          <button class="btn is-main" type="submit">
            Sign in
          </button>
        </form>
      </div>
      <p class="small muted">
        No key yet? <code>SLUICE_ADMIN_KEY</code> is the first. It makes others on the page Keys.
      </p>
    </Outside>
  );
}

/**
 * A link on another site led here. Browsers do not send the cookie then (SameSite=Strict), so this page leads there once more,
 * from this site: its answer has the header Refresh.
 */
export function TryAgainPage({ frame, to }: { frame: Frame; to: string }): Html {
  return (
    <Outside frame={frame} title="One moment">
      <h1>One moment</h1>
      <p>
        <a href={to}>Go on</a>
      </p>
    </Outside>
  );
}

export function Outside({ frame, title, children }: { frame: Frame; title: string; children: Child }): Html {
  return (
    <Document title={title} frame={frame}>
      <header>
        <div class={`env${frame.isProduction ? "" : " is-calm"}`}>
          <b>{frame.environment}</b>
        </div>
      </header>
      <main class="sign" id="main">
        <span class="brand">
          <Logo />
        </span>
        {children}
      </main>
    </Document>
  );
}
