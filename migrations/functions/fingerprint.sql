-- fingerprint: which errors are of one kind. Two errors are, if their first lines are equal once everything that differs from job
-- to job is taken out: URLs, quoted text, e-mail addresses, times, ids and numbers.
--
-- Only ASCII classes, so that the answer does not depend on the database's locale. A change of these rules makes new groups for
-- the errors from then on. It moves no dead letter that has a fingerprint.

-- The kind of an error as people read it: "HTTP ‹n› from ‹url›". Of a long line only the first 500 characters count.
create or replace function error_pattern(message text) returns text
language plpgsql immutable parallel safe
as $$
declare
  -- A quote inside a word is an apostrophe. A long word of letters and at least two digits is an id.
  c_rules constant text[] := array[
    '[A-Za-z][A-Za-z0-9+.-]*://[^\s"''`<>]*[^\s"''`<>.,:;!?)\]}]', '‹url›',
    '"[^"]*"|`[^`]*`|“[^”]*”|(?<![A-Za-z0-9])''[^'']*''(?![A-Za-z0-9])', '‹text›',
    '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+', '‹email›',
    '[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?', '‹time›',
    '[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}', '‹id›',
    '0[xX][0-9A-Fa-f]+', '‹n›',
    '(?<![A-Za-z0-9_])(?=[A-Za-z_-]*[0-9][A-Za-z0-9_-]*[0-9])(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]{12,}', '‹id›',
    '(?<![A-Za-z0-9_])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,}(?![A-Za-z0-9_])', '‹id›',
    '[0-9]+([.,:][0-9]+)*', '‹n›',
    '(‹[a-z]+›)(\s*,\s*‹[a-z]+›)+', '\1',
    '\s+', ' '];
  v_text text := left(btrim(split_part(translate(message, e'\r', e'\n'), e'\n', 1)), 500);
begin
  for n in 1 .. cardinality(c_rules) by 2 loop
    v_text := regexp_replace(v_text, c_rules[n], c_rules[n + 1], 'g');
  end loop;
  return left(v_text, 200);
end $$;

-- 0: there is no error.
create or replace function error_fingerprint(message text) returns bigint
language sql immutable parallel safe
return case when coalesce(message, '') = '' then 0
            else ('x' || encode(substring(sha256(convert_to(error_pattern(message), 'utf8')) for 8), 'hex'))::bit(64)::bigint end;
