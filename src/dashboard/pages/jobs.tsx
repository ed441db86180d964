// Jobs: the list, newest first, with its filter in the URL.
import { type JobStatus, jobStatuses, timeOfId } from "../../core/job.ts";
import { listShownJobs } from "../../core/sql/index.ts";
import type { Page, PageRequest } from "../page.ts";
import { Empty } from "../parts/card.tsx";
import { hiddenTypes, rowTextLength, SelectableJobs } from "../parts/job-table.tsx";
import { Chip } from "../parts/links.tsx";
import { absolute } from "../parts/numbers.ts";
import { Pager, pageSize, takePage, urlWith } from "../parts/pager.tsx";
import { Moment } from "../parts/time.tsx";
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
      body: (
        <div class="card">
          <SearchForm search={search} />
          <Narrow request={request} search={search} />
          {faults.map((fault) => (
            <p class="pad t-dead" role="alert">
              {fault}
            </p>
          ))}
          {shown.length > 0 && <SelectableJobs request={request} jobs={shown} />}
          {shown.length === 0 && searchedTo === null && <NoJobs search={search} />}
          {searchedTo !== null && (
            <p class="pad muted">
              Searched back to <Moment at={timeOfId(searchedTo)} text={absolute(timeOfId(searchedTo))} />
              {shown.length === 0 ? ", and found none yet." : "."} Older jobs were not looked at: go on.
            </p>
          )}
          <Pager
            request={request}
            next={next ?? searchedTo}
            {...(searchedTo !== null && { words: { first: "Newest", next: "Go on" } })}
          />
        </div>
      ),
    };
  },
};

function SearchForm({ search }: { search: JobSearch }) {
  return (
    <form class="search" role="search" action="/jobs">
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="7" cy="7" r="4.5" />
        <path d="M10.5 10.5 14 14" />
      </svg>
      <label class="sr" for="q">
        Search jobs
      </label>
      <input
        id="q"
        name="q"
        type="search"
        value={formatSearch(search)}
        placeholder='type:send_email status:dead queue:default tag:signup key:"customer 7" since:2h'
        list="hints"
        autocomplete="off"
        spellcheck={false}
      />
      <datalist id="hints">
        {jobStatuses.map((status) => (
          <option value={`status:${status}`} />
        ))}
        {qualifiers.map((name) => (
          <option value={`${name}:`} />
        ))}
      </datalist>
      <kbd>/</kbd>
      <button class="btn" type="submit">
        Search
      </button>
    </form>
  );
}

function Narrow({ request, search }: { request: PageRequest; search: JobSearch }) {
  const statusUrl = (status: JobStatus | undefined) =>
    urlWith(request, {
      ...Object.fromEntries(qualifiers.map((name) => [name, undefined])),
      q: formatSearch({ parts: { ...search.parts, status } }),
      before: undefined,
    });
  return (
    <div class="pad chips">
      <span class="muted">Narrow:</span>
      {jobStatuses.map((status) => (
        <Chip
          href={statusUrl(status === search.filter.status ? undefined : status)}
          text={`status:${status}`}
          isOn={status === search.filter.status}
        />
      ))}
      <a class="push" href="/jobs">
        Clear
      </a>
    </div>
  );
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
