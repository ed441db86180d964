// What went wrong, as a page. It says what a person can do about it.
import type { Problem } from "../contract/problem.ts";
import type { Frame } from "./layout.tsx";
import type { Content, Html } from "./page.ts";
import { Outside } from "./sign-in-page.tsx";

/** `path` is tried again. Undefined if that would not help. */
export function errorContent(
  { title, detail, status, errors = [] }: Problem,
  path: string | undefined,
): Content {
  return {
    title,
    body: (
      <div class="card pad stack" id="error">
        <p>{toSentence(detail)}</p>
        {status >= 500 && path !== undefined ? (
          <p class="muted">
            Nothing is lost: jobs wait in the database. <code>npx sluice doctor</code> looks for the cause.
          </p>
        ) : null}
        {errors.length === 0 ? null : (
          <ul>
            {errors.map((fault) => (
              <li>
                <code>{fault.path}</code> {fault.message}
              </li>
            ))}
          </ul>
        )}
        <div class="row">
          {path === undefined ? null : (
            <a class="btn is-main" href={path}>
              Try again
            </a>
          )}
          <a class="btn" href="/">
            Overview
          </a>
        </div>
      </div>
    ),
  };
}

/** For people who are not signed in. */
export function ErrorPage({ frame, content }: { frame: Frame; content: Content }): Html {
  return (
    <Outside frame={frame} title={content.title}>
      <h1>{content.title}</h1>
      {content.body}
    </Outside>
  );
}

/** Errors are written for logs: without a capital letter and a full stop. */
export function toSentence(text: string): string {
  const capital = text.replace(/^[a-z]/, (sign) => sign.toUpperCase());
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
