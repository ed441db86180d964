// Finds the jobs that have ended since the last look. Lists are ordered by when jobs were enqueued, not by when they ended,
// so it reads the newest pages of each end as long as they have something new, and looks up what is no longer processed. An
// index by end time would make it exact, but every settle would write it: 72 bytes of log, a sixth of what a settle of one job
// writes. A BRIN index writes the same as soon as its newest range is summarized. The order of rows in `done` does not help
// either: a short row goes wherever a page has room. The books cost nobody anything, so they say how many completed jobs it
// has missed.
import type { JobResponse } from "../contract/jobs.ts";
import type { Api } from "./api.ts";
import { CommandError, exitCodes } from "./exit.ts";

const ends = ["completed", "dead", "cancelled", "discarded"] as const;
type End = (typeof ends)[number];
type Filter = Readonly<Record<string, unknown>>;

const pageSize = 100;
/** In one look, of each list. A burst that is longer loses its oldest jobs. */
const maxPages = 20;
/** Of each end. */
const maxRemembered = 20_000;

/** What is known about one end: the ids that were seen, and the oldest id that can be new. Ids sort by time. */
interface Seen {
  ids: Set<string>;
  floor: string;
}

export interface Tail {
  /** The jobs that have ended since the call before, oldest first. The first call answers with none. */
  ended: JobResponse[];
  /** So many more have completed since. */
  missed: number;
}

export function createJobTail(api: Api, filter: Filter): () => Promise<Tail> {
  const countMissed = createMissedCount(api, filter);
  const seen = new Map<End, Seen>();
  let processing = new Set<string>();

  async function readEnds(status: End): Promise<JobResponse[]> {
    const known = seen.get(status);
    if (!known) {
      const [page = []] = await readPages({ ...filter, status }, () => false);
      const ids = page.map(({ job_id }) => job_id);
      seen.set(status, { ids: new Set(ids), floor: ids.length === pageSize ? (ids.at(-1) ?? "") : "" });
      return [];
    }
    const isNew = ({ job_id }: JobResponse) => job_id > known.floor && !known.ids.has(job_id);
    const pages = await readPages({ ...filter, status }, (page) => page.some(isNew));
    const found = pages.flat().filter(isNew);
    remember(known, found);
    return found;
  }

  /** Those that were processed at the last look and are not now. One that is processed again, after a replay, can end again. */
  async function readProcessed(): Promise<JobResponse[]> {
    const pages = await readPages({ ...filter, status: "processing" }, () => true);
    const before = processing;
    processing = new Set(pages.flat().map(({ job_id }) => job_id));
    for (const { ids } of seen.values()) for (const id of processing) ids.delete(id);
    const isSeen = (id: string) => [...seen.values()].some(({ ids }) => ids.has(id));
    const gone = [...before].filter((id) => !processing.has(id) && !isSeen(id));
    const jobs = await Promise.all(gone.map((id) => api.call("getJob", { path: { id } })));
    return jobs.filter((job) => {
      const known = seen.get(job.status as End);
      if (known) remember(known, [job]);
      return known !== undefined;
    });
  }

  async function readPages(
    query: Filter,
    goesOn: (page: JobResponse[]) => boolean,
  ): Promise<JobResponse[][]> {
    const pages: JobResponse[][] = [];
    let cursor: string | null = null;
    do {
      const answer: { jobs: JobResponse[]; next_cursor: string | null } = await api.call("listJobs", {
        query: { ...query, limit: pageSize, cursor },
      });
      pages.push(answer.jobs);
      cursor = answer.next_cursor;
    } while (cursor !== null && pages.length < maxPages && goesOn(pages.at(-1) ?? []));
    return pages;
  }

  async function readAll(): Promise<JobResponse[]> {
    const ended = (await Promise.all(ends.map(readEnds))).flat();
    ended.push(...(await readProcessed()));
    return ended.toSorted((a, b) => (endOf(a) < endOf(b) ? -1 : 1));
  }

  return () => countMissed(readAll);
}

/**
 * Compares what is shown with the books. They are read before the lists, so what they count is in the lists or was missed. In the
 * first call they are read after them.
 */
function createMissedCount(
  api: Api,
  { type, queue }: Filter,
): (read: () => Promise<JobResponse[]>) => Promise<Tail> {
  let isFirst = true;
  /** What the books had at the start, and what was shown or reported since. Undefined: the key may not see the books. */
  let accounted: number | undefined;

  async function readCompleted(): Promise<number | undefined> {
    try {
      const { books } = await api.call("getStats", {});
      return books
        .filter((entry) => (type ?? entry.type) === entry.type && (queue ?? entry.queue) === entry.queue)
        .reduce((sum, entry) => sum + entry.books.completed, 0);
    } catch (error) {
      if (error instanceof CommandError && error.exitCode === exitCodes.failed) return undefined;
      throw error;
    }
  }

  return async (read) => {
    const completed = isFirst ? undefined : await readCompleted();
    const ended = await read();
    if (isFirst) accounted = await readCompleted();
    isFirst = false;
    if (accounted === undefined || completed === undefined) return { ended, missed: 0 };
    accounted += ended.filter(({ status }) => status === "completed").length;
    const missed = Math.max(completed - accounted, 0);
    accounted += missed;
    return { ended, missed };
  };
}

function endOf(job: JobResponse): string {
  return job.completed_at ?? job.started_at ?? job.created_at;
}

/** Forgets the oldest when there are too many, and takes nothing older for new from then on. */
function remember(known: Seen, jobs: readonly JobResponse[]): void {
  for (const { job_id } of jobs) known.ids.add(job_id);
  if (known.ids.size <= maxRemembered) return;
  const [floor = "", ...kept] = [...known.ids].toSorted().slice(-maxRemembered);
  known.ids = new Set(kept);
  known.floor = floor;
}
