// Audit: who did what, newest first, with a filter in the URL.
import type { Child } from "hono/jsx";
import type { AuditEntry, AuditFilter } from "../../core/sql/audit.ts";
import { searchAudit } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Input } from "../parts/action-form.tsx";
import { Empty } from "../parts/card.tsx";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

const position = /^\d{1,18}$/;
const parts = ["actor", "action", "target"] as const;
const labels = { actor: "By", action: "Action", target: "Target" };
const hints = { actor: "admin", action: "pause", target: "queue default" };

export const audit: Page = {
  path: "/audit",
  section: "Audit",
  async render(request) {
    const cursor = request.query.get("before") ?? "";
    const before = position.test(cursor) ? cursor : undefined;
    const filter = filterOf(request);
    const { entries, searchedTo } = await request.db.run(
      searchAudit({ ...filter, before, limit: pageSize + 1 }),
    );
    const { shown, next } = takePage(entries, ({ id }) => id);
    const isFiltered = Object.keys(filter).length > 0;
    const reached = isFiltered && next === null ? searchedTo : null;
    if (entries.length === 0 && !isFiltered && before === undefined)
      return {
        title: "Audit",
        body: (
          <Empty title="Nothing yet">
            Whoever pauses, replays, discards, cancels or makes a key is listed here, with the time and what
            changed. Make a key, for example.
          </Empty>
        ),
      };
    return {
      title: "Audit",
      body: (
        <div class="card">
          <FilterForm filter={filter} />
          {shown.length > 0 ? <Entries request={request} entries={shown} /> : null}
          {shown.length === 0 && reached === null ? (
            <Empty title="No entry fits">Leave a field empty to see more.</Empty>
          ) : null}
          {reached === null ? null : (
            <p class="pad muted">Searched back to entry {reached}. Older entries are on the next page.</p>
          )}
          <Pager request={request} next={next ?? reached} />
        </div>
      ),
    };
  },
};

function filterOf({ query }: PageRequest): AuditFilter {
  return Object.fromEntries(
    parts.flatMap((part) => {
      const value = query.get(part)?.trim();
      return value ? [[part, value]] : [];
    }),
  );
}

function FilterForm({ filter }: { filter: AuditFilter }) {
  return (
    <form class="pad row filter" role="search" action="/audit">
      {parts.map((part) => (
        <Input
          name={part}
          label={labels[part]}
          value={filter[part] ?? ""}
          control={{ type: "search", placeholder: hints[part], autocomplete: "off" }}
        />
      ))}
      <button class="btn" type="submit">
        Search
      </button>
      <a class="push" href="/audit">
        Clear
      </a>
    </form>
  );
}

function Entries({ request, entries }: { request: PageRequest; entries: readonly AuditEntry[] }) {
  return (
    <Table
      name="Audit"
      rows={entries}
      columns={[
        { title: "Action", class: "nw", cell: ({ action }) => action },
        { title: "Target", cell: ({ target }) => targetLink(target) },
        { title: "By", class: "nw hide-s", cell: ({ actor }) => actor },
        { title: "What changed", class: "wide hide-s", cell: (entry) => <Change entry={entry} /> },
        { title: "When", class: "n", cell: ({ at }) => <Time at={at} now={request.now} /> },
      ]}
    />
  );
}

/** Links to what the entry is about, where it has a page. */
function targetLink(target: string): Child {
  const [, kind = "", name = ""] = /^(\w+) (.+)$/.exec(target) ?? [];
  const path = pathOf[kind];
  return path === undefined ? target : <a href={`${path}/${encodeURIComponent(name)}`}>{target}</a>;
}

const pathOf: Record<string, string> = {
  job: "/jobs",
  flow: "/flows",
  type: "/types",
  run: "/dead-letters/runs",
};

/** Of what changed, before it is opened. */
const maxCharacters = 60;

function Change({ entry: { before, after } }: { entry: AuditEntry }) {
  if (before === null && after === null) return <None text="–" />;
  const text = JSON.stringify(after ?? before);
  return (
    <details>
      <summary>
        <code>{text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text}</code>
      </summary>
      <pre tabindex={0} role="group" aria-label="Before and after">
        {JSON.stringify({ before, after }, null, 2)}
      </pre>
    </details>
  );
}
