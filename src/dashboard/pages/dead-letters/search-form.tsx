// The search line of dead letters, and chips that narrow the search.
import type { DeadGroup } from "../../../core/dead-letters.ts";
import { Chip } from "../../parts/links.tsx";
import { type DeadSearch, deadUrl, type Filter, formatFilter } from "./filter.ts";

interface SearchFormProps {
  path: string;
  search: DeadSearch;
  /** What the chips count. */
  groups?: readonly DeadGroup[];
}

export function SearchForm({ path, search: { filter, faults }, groups = [] }: SearchFormProps) {
  return (
    <>
      <form class="search" role="search" action={path}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="7" cy="7" r="4.5" />
          <path d="M10.5 10.5 14 14" />
        </svg>
        <label class="sr" for="q">
          Search dead letters
        </label>
        <input
          id="q"
          name="q"
          type="search"
          value={formatFilter(filter)}
          placeholder="type:send_email reason:exhausted queue:default"
          autocomplete="off"
          spellcheck={false}
        />
        <kbd>/</kbd>
        <button class="btn" type="submit">
          Search
        </button>
      </form>
      <Narrow path={path} filter={filter} groups={groups} />
      {faults.map((fault) => (
        <p class="pad t-dead" role="alert">
          {fault}
        </p>
      ))}
    </>
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
