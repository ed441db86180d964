// The numbers beside the menu come along with the first statement of a page.
import { withMenuCounts } from "../../core/sql/index.ts";
import type { MenuCounts } from "../../core/sql/menu-counts.ts";
import type { Database } from "../../queue/ports.ts";

interface CountingDatabase {
  /** For the page. */
  db: Database;
  /** Undefined before the first statement has been answered. */
  counts(): MenuCounts | undefined;
}

export function countForMenu(db: Database): CountingDatabase {
  let isFirst = true;
  let counts: MenuCounts | undefined;
  return {
    db: {
      async run(statement) {
        if (!isFirst) return db.run(statement);
        isFirst = false;
        const { answer, menu } = await db.run(withMenuCounts(statement));
        counts = menu;
        return answer;
      },
    },
    counts: () => counts,
  };
}
