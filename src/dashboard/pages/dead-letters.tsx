// Dead letters in groups of the same type, reason and error, with the runs that replay or discard them.
import type { PropsWithChildren } from "hono/jsx";
import type { DeadGroups } from "../../core/sql/dead-groups.ts";
import { countDead, listDeadGroups, listDeadRuns } from "../../core/sql/index.ts";
import type { Html, Page, PageRequest } from "../page.ts";
import { Empty } from "../parts/card.tsx";
import { counted } from "../parts/numbers.ts";
import { type DeadSearch, formatFilter, openerId, parseDeadSearch, startUrl } from "./dead-letters/filter.ts";
import { GroupTable } from "./dead-letters/group-table.tsx";
import { PastRuns, RunCard } from "./dead-letters/runs.tsx";
import { SearchForm } from "./dead-letters/search-form.tsx";
import { StartDialog } from "./dead-letters/start-dialog.tsx";
import { Views } from "./dead-letters/views.tsx";

const path = "/dead-letters";
const maxGroups = 50;
const shownRuns = 10;
/** Of the runs that go on. */
const shownOutcomes = 2;

export const deadLetters: Page = {
  path,
  section: "Dead letters",
  async render(request) {
    const search = parseDeadSearch(request.query);
    const { facts, body } = await readGroups(request, search);
    return {
      title: "Dead letters",
      facts,
      tools: <Views filter={search.filter} current="groups" />,
      body,
    };
  },
};

/** The number first, then what to do with them. The groups are behind it. */
export const startRun: Page = {
  path: `${path}/start`,
  section: "Dead letters",
  async render(request) {
    const asked = parseDeadSearch(request.query);
    const [one, ...others] = asked.chosen ?? [];
    const search =
      one && others.length === 0
        ? { ...asked, filter: { ...one, queue: asked.filter.queue }, chosen: undefined }
        : asked;
    const [{ facts, groups, body }, counted] = await Promise.all([
      readGroups(request, asked),
      request.db.run(countDead(search.filter)),
    ]);
    return {
      title: "Dead letters",
      facts,
      body: (
        <>
          <div class="stack" inert>
            {body}
          </div>
          <div class="veil" />
          <StartDialog request={request} search={search} groups={groups} counted={counted} />
        </>
      ),
    };
  },
};

async function readGroups(request: PageRequest, search: DeadSearch) {
  const { fingerprint, ...filter } = search.filter;
  const [all, runs] = await Promise.all([
    request.db.run(listDeadGroups({ ...filter, limit: maxGroups })),
    request.db.run(listDeadRuns({ limit: shownRuns, outcomes: shownOutcomes })),
  ]);
  const found = fingerprint ? only(all, fingerprint) : all;
  const running = runs.filter(({ state }) => state === "running");
  const ended = runs.filter(({ state }) => state !== "running");
  const facts =
    found.totalDead === 0 ? undefined : (
      <span class="muted">
        {counted(found.totalDead, "job")} of {counted(found.totalGroups, "kind")}, none lost: each can be
        replayed or discarded
      </span>
    );
  const body: Html = (
    <>
      {running.map((run) => (
        <RunCard request={request} run={run} />
      ))}
      {found.totalDead === 0 && formatFilter(search.filter) === "" && search.faults.length === 0 ? (
        <Empty title="No dead letters">
          A job that fails for good is listed here, with all others that died of the same error. You can
          replay or discard them together. To see one, enqueue a job that throws a FatalError.
        </Empty>
      ) : (
        <div class="card">
          <SearchForm request={request} path={path} search={search} groups={found.groups} />
          {found.totalDead === 0 ? (
            <Empty title="No dead letter fits this search">Remove a part of the search.</Empty>
          ) : (
            <Choose request={request} search={search}>
              <GroupTable request={request} search={search} found={found} />
              <Bulk request={request} search={search} dead={found.totalDead} />
            </Choose>
          )}
        </div>
      )}
      {ended.length > 0 ? <PastRuns request={request} runs={ended} /> : null}
    </>
  );
  return { facts, groups: found.groups, body };
}

/** The groups of one error. There is one for each type and reason. */
function only({ groups }: DeadGroups, fingerprint: string): DeadGroups {
  const own = groups.filter((group) => group.fingerprint === fingerprint);
  return {
    groups: own,
    totalGroups: own.length,
    totalDead: own.reduce((sum, { count }) => sum + count, 0),
  };
}

/** A form that asks for the dialog. It changes nothing. */
function Choose({
  request,
  search: { filter },
  children,
}: PropsWithChildren<{ request: PageRequest; search: DeadSearch }>) {
  if (!request.viewer.mayChange) return <>{children}</>;
  return (
    <form class="picks" method="get" action={`${path}/start`}>
      <input type="hidden" name="choose" value="groups" />
      {filter.queue ? <input type="hidden" name="queue" value={filter.queue} /> : null}
      {formatFilter(filter) ? <input type="hidden" name="back" value={formatFilter(filter)} /> : null}
      {children}
    </form>
  );
}

function Bulk({ request, search, dead }: { request: PageRequest; search: DeadSearch; dead: number }) {
  if (!request.viewer.mayChange) return null;
  const { filter } = search;
  const jobs = counted(dead, "job");
  return (
    <div class="bulk row">
      <span class="nw">
        <span class="picked" /> selected
      </span>
      <button class="btn" type="submit" name="action" value="replay" id="replay-chosen">
        Replay
      </button>
      <button class="btn is-danger" type="submit" name="action" value="discard" id="discard-chosen">
        Discard
      </button>
      <span class="push row small">
        <a class="link" id={openerId("replay", {})} href={startUrl("replay", filter, filter)}>
          Replay all {jobs}
        </a>
        <a class="link" id={openerId("discard", {})} href={startUrl("discard", filter, filter)}>
          Discard all
        </a>
      </span>
    </div>
  );
}
