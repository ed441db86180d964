// The search line of dead letters, and chips that narrow the search.
import type { DeadGroup } from "../../../core/dead-letters.ts";
import type { PageRequest } from "../../page.ts";
import { Chip } from "../../parts/links.tsx";
import { SearchLine } from "../../parts/search-line.tsx";
import { type DeadSearch, deadUrl, type Filter, formatFilter } from "./filter.ts";

interface SearchFormProps {
  request: PageRequest;
  path: string;
  search: DeadSearch;
  /** What the chips count. */
  groups?: readonly DeadGroup[];
}

export function SearchForm({ request, path, search: { filter, faults }, groups = [] }: SearchFormProps) {
  return (
    <SearchLine
      path={path}
      label="Search dead letters"
      value={faults.length > 0 ? (request.query.get("q") ?? "") : formatFilter(filter)}
      placeholder="type:send_email reason:exhausted queue:default"
      faults={faults}
    >
      <Narrow path={path} filter={filter} groups={groups} />
    </SearchLine>
  );
}

/** So many types are offered. */
const maxTypes = 5;

function Narrow({ path, filter, groups }: { path: string; filter: Filter; groups: readonly DeadGroup[] }) {
  const reasons = filter.reason ? [] : countBy(groups, ({ reason }) => reason);
  const types = filter.type ? [] : countBy(groups, ({ type }) => type);
  const isFiltered = formatFilter(filter) !== "";
  if (reasons.length + types.length < 2 && !isFiltered) return null;
  return (
    <div class="pad chips">
      {reasons.length + types.length > 0 ? <span class="muted">Narrow:</span> : null}
      {reasons.map(({ value: reason, jobs }) => (
        <Chip href={deadUrl(path, { ...filter, reason })} text={`reason:${reason}`} number={jobs} />
      ))}
      {types.slice(0, maxTypes).map(({ value: type, jobs }) => (
        <Chip href={deadUrl(path, { ...filter, type })} text={`type:${type}`} number={jobs} />
      ))}
      {isFiltered ? (
        <a class="push" href={path}>
          Clear
        </a>
      ) : null}
    </div>
  );
}

/** The largest first. */
function countBy<Value>(
  groups: readonly DeadGroup[],
  partOf: (group: DeadGroup) => Value,
): { value: Value; jobs: number }[] {
  return [...Map.groupBy(groups, partOf)]
    .map(([value, members]) => ({ value, jobs: members.reduce((sum, { count }) => sum + count, 0) }))
    .toSorted((a, b) => b.jobs - a.jobs);
}
