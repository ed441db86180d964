// Jobs: the list, newest first, with its filter in the URL.
import { jobStatuses } from "../../core/job.ts";
import { listShownJobs } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Empty } from "../parts/card.tsx";
import { hiddenTypes, rowTextLength, SelectableJobs } from "../parts/job-table.tsx";
import { Chip } from "../parts/links.tsx";
import { goOn, Pager, pageSize, SearchedTo, takePage, urlWith } from "../parts/pager.tsx";
import { SearchLine } from "../parts/search-line.tsx";
import { formatSearch, type JobSearch, parseSearch, qualifiers } from "../search.ts";

export const jobs: Page = {
  path: "/jobs",
  section: "Jobs",
  async render(request) {
    const search = parseSearch(request.query, request.now);
    const { filter, faults } = search;
    const page = await request.db.run(
      listShownJobs({
        ...filter,
        limit: pageSize + 1,
        textLength: rowTextLength,
        hiddenTypes: hiddenTypes(request.registry),
      }),
    );
    const { shown, next } = takePage(page.jobs, ({ id }) => id);
    const searchedTo = next === null ? page.next : null;
    return {
      title: "Jobs",
      facts:
        shown.length > 0 ? <span class="muted">{`${shown.length} shown, newest first`}</span> : undefined,
      tools: request.viewer.mayChange ? (
        <a class="btn" href="/types">
          Enqueue a job
        </a>
      ) : undefined,
      body: (
        <div class="card">
          <SearchLine
            path="/jobs"
            label="Search jobs"
            value={faults.length > 0 ? (request.query.get("q") ?? "") : formatSearch(search)}
            placeholder='type:send_email status:dead queue:default tag:signup key:"customer 7" since:2h'
            hints={[
              ...jobStatuses.map((status) => `status:${status}`),
              ...qualifiers.map((name) => `${name}:`),
            ]}
            faults={faults}
          >
            <Narrow request={request} search={search} types={shown.map(({ type }) => type)} />
          </SearchLine>
          {shown.length > 0 && <SelectableJobs request={request} jobs={shown} />}
          {shown.length === 0 && searchedTo === null && <NoJobs search={search} />}
          <SearchedTo id={searchedTo} found={shown.length} what="jobs" />
          <Pager request={request} next={next ?? searchedTo} {...(searchedTo !== null && { words: goOn })} />
        </div>
      ),
    };
  },
};

/** So many types of the page are offered. */
const maxTypes = 4;
const ages = ["1h", "24h"];

interface NarrowProps {
  request: PageRequest;
  search: JobSearch;
  /** Of the jobs that are shown. */
  types: readonly string[];
}

function Narrow({ request, search: { parts }, types }: NarrowProps) {
  const offered: [name: "status" | "type" | "since", values: readonly string[]][] = [
    ["status", jobStatuses],
    ["type", parts.type ? [parts.type] : mostOf(types).slice(0, maxTypes)],
    ["since", ages],
  ];
  const urlOf = (name: string, value: string | undefined) =>
    urlWith(request, {
      ...Object.fromEntries(qualifiers.map((other) => [other, undefined])),
      q: formatSearch({ parts: { ...parts, [name]: value } }),
      before: undefined,
    });
  return (
    <div class="pad chips">
      <span class="muted">Narrow:</span>
      {offered.flatMap(([name, values]) =>
        values.map((value) => (
          <Chip
            href={urlOf(name, value === parts[name] ? undefined : value)}
            text={`${name}:${value}`}
            isOn={value === parts[name]}
          />
        )),
      )}
      <a class="push" href="/jobs">
        Clear
      </a>
    </div>
  );
}

/** Each once, the most frequent first. */
function mostOf(types: readonly string[]): string[] {
  const byType = [...Map.groupBy(types, (type) => type).values()];
  return byType.toSorted((a, b) => b.length - a.length).flatMap(([type]) => type ?? []);
}

function NoJobs({ search }: { search: JobSearch }) {
  return formatSearch(search) === "" ? (
    <Empty
      title="No jobs yet"
      example={`curl -X POST -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  $SLUICE_URL/v1/jobs -d '{ "type": "echo", "payload": { "n": 1 } }'`}
    >
      Every job that you enqueue is listed here, with its state, its attempts and what happens to it next.
    </Empty>
  ) : (
    <Empty title="No job fits this search">Remove a part of the search, or look at all jobs.</Empty>
  );
}
