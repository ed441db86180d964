// Statements as text and values. sql/contract.test.ts tests that Postgres accepts each one.
import { expect, test } from "vitest";
import { enqueue } from "../../src/core/sql/index.ts";
import { compile } from "../../src/core/sql/statement.ts";

const mail = { type: "mail", payload: { n: 1 } };

test("a compiled statement has the values of its call and the name of the schema", () => {
  const one = compile(enqueue([mail]), "sluice");
  const other = compile(enqueue([mail, { ...mail, priority: 1 }]), "other");
  expect(one).toEqual({
    text: 'with uncached as (select now()) select "sluice".enqueue_jobs($1::jsonb) as answers',
    values: ['{"type":"mail","payloads":[{"n":1}]}'],
  });
  expect(other.text).toContain('select "other".enqueue_jobs($1::jsonb) as answers');
  expect(JSON.parse(String(other.values[0]))).toEqual([mail, { ...mail, priority: 1 }]);
});
