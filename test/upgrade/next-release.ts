// Two imagined later releases. They change what a release may change: a numbered file, every function file, and the
// arguments, the result or the existence of functions. Only the upgrade test calls the functions here.
import { readMigrationFiles } from "../../src/cli/migration-files.ts";
import { changeFiles } from "../support/migration-files.ts";

const probe = (inner: string, call: string) => `
  ${inner}
  create or replace function probe() returns text language plpgsql security definer set search_path from current as $$
  begin
    return ${call};
  end $$;`;

const innerBefore = `
  create or replace function inner_probe(n int) returns int language sql as $$ select n $$;
  create or replace function typed_probe() returns int language sql as $$ select 1 $$;
  create or replace function old_probe() returns int language sql as $$ select 1 $$;`;
const innerAfter = `
  create or replace function inner_probe(n int, more int) returns int language sql as $$ select n + more $$;
  create or replace function typed_probe() returns text language sql as $$ select '1' $$;`;

const everyFunctionFile = (note: string) =>
  Object.fromEntries(readMigrationFiles().functions.map(({ name, text }) => [name, `${text}\n-- ${note}`]));

const added = { "0002_note.sql": "alter table job add column note text;" };

export const nextRelease = changeFiles({
  ...everyFunctionFile("next"),
  ...added,
  "functions/probe.sql": probe(innerBefore, "inner_probe(1)::text || typed_probe() || old_probe()"),
});

export const releaseAfterNext = changeFiles({
  ...everyFunctionFile("after next"),
  ...added,
  "functions/probe.sql": probe(innerAfter, "inner_probe(1, 2)::text || typed_probe()"),
});
