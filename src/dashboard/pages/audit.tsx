// Audit: who did what, newest first.
import { listAudit } from "../../core/sql/index.ts";
import type { Page } from "../page.ts";
import { Empty } from "../parts/card.tsx";
import { Pager, pageSize, takePage } from "../parts/pager.tsx";
import { None, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

const position = /^\d{1,18}$/;

export const audit: Page = {
  path: "/audit",
  section: "Audit",
  async render(request) {
    const cursor = request.query.get("before") ?? "";
    const before = position.test(cursor) ? cursor : undefined;
    const found = await request.db.run(listAudit({ before, limit: pageSize + 1 }));
    const { shown, next } = takePage(found, ({ id }) => id);
    if (found.length === 0)
      return {
        title: "Audit",
        body: (
          <Empty title="Nothing yet">
            Whoever pauses, replays, discards, cancels or makes a key is listed here, with the time and what
            changed.
          </Empty>
        ),
      };
    return {
      title: "Audit",
      body: (
        <div class="card">
          <Table
            name="Audit"
            rows={shown}
            columns={[
              { title: "Action", class: "nw", cell: ({ action }) => action },
              { title: "Target", class: "wide", cell: ({ target }) => target },
              { title: "By", class: "nw", cell: ({ actor }) => actor },
              { title: "Before", class: "hide-m", cell: ({ before }) => <Value value={before} /> },
              { title: "After", class: "hide-m", cell: ({ after }) => <Value value={after} /> },
              { title: "When", class: "n", cell: ({ at }) => <Time at={at} now={request.now} /> },
            ]}
          />
          <Pager request={request} next={next} />
        </div>
      ),
    };
  },
};

const maxCharacters = 120;

function Value({ value }: { value: unknown }) {
  if (value === null) return <None />;
  const text = JSON.stringify(value);
  return <code title={text}>{text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text}</code>;
}
