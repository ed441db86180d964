// menu counts: the numbers beside the menu of the dashboard. They ride along with a statement of the page, so a page needs no
// statement more. See migrations/functions/menu-counts.sql.
import { sql } from "./sql.ts";
import type { Row, Statement } from "./statement.ts";

export interface MenuCounts {
  dead: number;
  /** Aloud. */
  firing: number;
  /** They fire, but nobody is told. */
  silenced: number;
}

/**
 * The same statement, with the counts in every row. If it finds nothing there is one row that says so. The order stays as it
 * was: a join without a condition is a nested loop over the one row of counts.
 */
export function withMenuCounts<T>(statement: Statement<T>): Statement<{ answer: T; menu: MenuCounts }> {
  return {
    ...statement,
    build: (schema) => sql`
      select to_json(counts) as menu_counts, found_row is not distinct from null as is_empty, found_row.*
      from ${schema}.menu_counts() as counts
      left join (${statement.build(schema)}) as found_row on true`,
    decode: (rows) => ({
      menu: decodeCounts(rows[0]),
      answer: statement.decode(rows.filter(({ is_empty }) => !is_empty)),
    }),
  };
}

function decodeCounts(row: Row | undefined): MenuCounts {
  const { dead, firing, silenced } = (row?.menu_counts ?? {}) as Partial<MenuCounts>;
  return { dead: Number(dead ?? 0), firing: Number(firing ?? 0), silenced: Number(silenced ?? 0) };
}
