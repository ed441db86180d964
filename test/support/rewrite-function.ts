// Changes the text of a function in a test's database: a mutation, which a test must notice.
import type pg from "pg";

export interface Mutation {
  /** The function's name. */
  name: string;
  from: string;
  to: string;
}

export async function rewriteFunction(pool: pg.Pool, { name, from, to }: Mutation): Promise<void> {
  const { rows } = await pool.query("select pg_get_functiondef($1::regproc) as text", [`sluice.${name}`]);
  const text = String(rows[0].text);
  if (!text.includes(from))
    throw new Error(`sluice.${name} has no "${from}" any more: mutate it in another way`);
  await pool.query(text.replace(from, to));
}
