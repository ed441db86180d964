// The described tables and views (src/core/sql/schema.ts) are those of the database: the same names, types, nullability and
// allowed values. So are the views for users of drizzle (src/drizzle/views.ts).
import { getViewSelectedFields } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import type { PgColumn } from "drizzle-orm/pg-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { Column, Columns } from "../../src/core/sql/column.ts";
import { books, findJobs } from "../../src/core/sql/index.ts";
import * as schema from "../../src/core/sql/schema.ts";
import { compile, type Statement } from "../../src/core/sql/statement.ts";
import * as views from "../../src/drizzle/views.ts";
import { examples } from "../support/statement-examples.ts";
import { useTestDatabase } from "../support/test-database.ts";
import { verbsOf } from "../support/verbs.ts";
import { wholeLife } from "../support/whole-life.ts";

interface CatalogueColumn {
  relation: string;
  name: string;
  type: string;
  notNull: boolean;
  isView: boolean;
  /** The definition of a check constraint of this column alone. */
  check: string | null;
}

const db = useTestDatabase();
const { query } = verbsOf(db);
const described = Object.entries<Columns>(schema).map(([name, columns]): [string, Column[]] => [
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  Object.values(columns),
]);
let catalogue: CatalogueColumn[];
beforeAll(async () => {
  // A column of a domain has the domain's type, as the driver sees it.
  catalogue = await query<CatalogueColumn>(`
    select relname as relation, attname as name, attnotnull as "notNull", relkind = 'v' as "isView",
           format_type(coalesce(nullif(typbasetype, 0), pg_type.oid), null) as type,
           (select pg_get_constraintdef(oid) from pg_constraint
            where conrelid = attrelid and contype = 'c' and conkey = array[attnum] limit 1) as check
    from pg_attribute
    join pg_class on pg_class.oid = attrelid
    join pg_type on pg_type.oid = atttypid
    where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'v') and attnum > 0 and not attisdropped`);
  await wholeLife(db);
});

describe.each(described)("%s", (relation, columns) => {
  const find = ({ name }: Column) =>
    catalogue.find((column) => column.relation === relation && column.name === name);

  test("has each column with its type", () => {
    const types = (of: (column: Column) => string | undefined) =>
      columns.map((column) => [column.name, of(column)]);
    expect(types((column) => column.type)).toEqual(types((column) => find(column)?.type));
  });

  test("is null only where the description says so", async () => {
    // The catalogue knows this of tables only. Of a view the rows tell.
    const { rows } = await db.pool.query(
      `select ${columns.map(({ name }) => `bool_and("${name}" is not null) as "${name}"`).join(", ")} from sluice.${relation}`,
    );
    for (const column of columns) {
      const found = find(column);
      if (found?.isView) expect(!column.isNotNull || rows[0][column.name], column.name).toBe(true);
      else expect(column.isNotNull, column.name).toBe(found?.notNull);
    }
  });

  test("allows the values that the description lists", () => {
    for (const column of columns) {
      const allowed = [...(find(column)?.check ?? "").matchAll(/'([^']*)'::text/g)].map(([, value]) => value);
      if (column.allowed && allowed.length > 0)
        expect(allowed.toSorted(), column.name).toEqual(column.allowed.toSorted());
    }
  });
});

describe("for users of drizzle", () => {
  test.each([
    ["jobs", views.jobs, schema.jobs],
    ["books", views.books, schema.books],
  ])("%s has the columns that Sluice itself reads", (_, view, columns) => {
    const fields = Object.entries(getViewSelectedFields(view) as Record<string, PgColumn>);
    const found = fields.map(([field, column]) => [
      field,
      [column.name, column.getSQLType(), column.notNull, column.enumValues],
    ]);
    const own = Object.entries<Column>(columns).map(([field, column]) => [
      field,
      [column.name, column.type, column.isNotNull, column.allowed],
    ]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(own));
  });

  test("a select answers with the rows that Sluice reads, in a schema of any name", async () => {
    const client = drizzle(db.pool);
    const found = await client.select().from(views.jobs).orderBy(views.jobs.id);
    const own = await db.run(findJobs(found.map(({ id }) => id)));
    expect(found.length).toBeGreaterThan(5);
    expect(found.map(({ leaseExpiresAt: _, ...job }) => ({ ...job, tags: job.tags ?? [] }))).toEqual(own);
    expect(new Set(await client.select().from(views.books))).toEqual(new Set(await db.run(books())));
    expect(client.select().from(views.viewsIn("other").jobs).toSQL().sql).toContain('from "other"."jobs"');
  });
});

test("every column that a statement reads directly is described", async () => {
  const names = new Set(
    described.flatMap(([relation, columns]) => columns.map(({ name }) => `${relation}.${name}`)),
  );
  const relations = await query<{ oid: number; relation: string; names: string[] }>(`
    select attrelid::int as oid, relname as relation, array_agg(attname::text order by attnum) as names
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'sluice'::regnamespace and relkind in ('r', 'v') and attnum > 0 group by 1, 2`);
  const read = new Set<string>();
  for (const statement of Object.values<Statement<unknown>[]>(examples).flat()) {
    const { text, values } = compile(statement, "sluice");
    const client = await db.pool.connect();
    await client.query("begin");
    const { fields } = await client.query(text, values);
    await client.query("rollback");
    client.release();
    for (const { tableID, columnID } of fields) {
      const found = relations.find(({ oid }) => oid === tableID);
      if (found) read.add(`${found.relation}.${found.names[columnID - 1]}`);
    }
  }
  expect(read.size).toBeGreaterThan(20);
  expect([...read].filter((name) => !names.has(name))).toEqual([]);
});
