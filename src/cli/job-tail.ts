// Finds the jobs that have ended since the last look. Lists are ordered by when jobs were enqueued, not by when they ended,
// so it reads the newest pages of each end as long as they have something new, and looks up what is no longer processed.
import type { JobResponse } from "../contract/jobs.ts";
import type { Api } from "./api.ts";

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

/** Each call answers with the jobs that have ended since the call before, oldest first. The first one answers with none. */
export function createJobTail(api: Api, filter: Filter): () => Promise<JobResponse[]> {
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

  return async () => {
    const ended = (await Promise.all(ends.map(readEnds))).flat();
    ended.push(...(await readProcessed()));
    return ended.toSorted((a, b) => (endOf(a) < endOf(b) ? -1 : 1));
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
