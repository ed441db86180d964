// Keyset pages: a cursor in the URL names the last row of the page before. There is no total, because it would have to be
// counted.
import { timeOfId } from "../../core/job.ts";
import type { PageRequest } from "../page.ts";
import { absolute } from "./numbers.ts";
import { Moment } from "./time.tsx";

export const pageSize = 50;

/** The URL of this page with some of its parameters changed. Undefined removes one. */
export function urlWith(
  { url }: Pick<PageRequest, "url">,
  changes: Record<string, string | undefined>,
): string {
  const query = new URLSearchParams(url.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? url.pathname : `${url.pathname}?${text}`;
}

interface PagerProps {
  request: PageRequest;
  /** The cursor of the next page, or null on the last one. */
  next: string | null;
  words?: { first: string; next: string };
}

const newestFirst = { first: "Newest", next: "Older" };
export const goOn = { first: "Newest", next: "Go on" };
export const byName = { first: "First page", next: "Next page" };

export function Pager({ request, next, words = newestFirst }: PagerProps) {
  const isFirst = !request.query.has("before");
  if (isFirst && next === null) return null;
  return (
    <nav class="row pad" aria-label="Pages">
      {isFirst ? null : (
        <a class="btn" href={urlWith(request, { before: undefined })}>
          {words.first}
        </a>
      )}
      {next === null ? (
        <span class="muted small">This is the last page.</span>
      ) : (
        <a class="btn push" href={urlWith(request, { before: next })} rel="next">
          {words.next}
        </a>
      )}
    </nav>
  );
}

/** How far a search came that has stopped before the end. `id` has the time in it; null: it came to the end. */
export function SearchedTo({ id, found, what }: { id: string | null; found: number; what: string }) {
  if (id === null) return null;
  return (
    <p class="pad muted">
      Searched back to <Moment at={timeOfId(id)} text={absolute(timeOfId(id))} />
      {found === 0 ? ", and found none yet." : "."} Older {what} were not looked at: go on.
    </p>
  );
}

/** Splits one row too many off a page: it only says that there are more. */
export function takePage<Row>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
): { shown: readonly Row[]; next: string | null } {
  const shown = rows.slice(0, pageSize);
  const last = shown.at(-1);
  return { shown, next: rows.length > pageSize && last ? idOf(last) : null };
}
