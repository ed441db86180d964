// What one isolate remembers between its invocations, all of it here. It is plain data: a promise that belongs to one
// request never settles in another one once the first is over. The platform may end an isolate at any time, so this only
// saves work or delays it; nothing depends on it.
import type { ApiKey } from "../core/key.ts";
import type { Settings } from "./settings/env.ts";

export interface IsolateState {
  /** The drains that nudges have started, by queue. An invocation that is cut off cannot clear its entry: time does. */
  nudges: Map<string, { untilMs: number; isAskedAgain: boolean }>;
  /** Waiting jobs by queue, as last read. */
  depths: { readAtMs: number; byQueue: ReadonlyMap<string, number> } | undefined;
  /** Failed enqueues that are not written to the database yet. */
  enqueueErrors: { unwritten: number; writtenAtMs: number };
  /** API keys by their hash. */
  keys: Map<string, { key: ApiKey; untilMs: number }>;
  /** Apart from the keys, so that guesses do not evict the keys in use. */
  unknownKeysUntilMs: Map<string, number>;
  /** Calls of each API key in the current second. */
  calls: { second: number; byKey: Map<string, number> };
  /** Statements that the database refused last because it cannot write, by name. */
  refusedWrites: Map<string, { code: string; atMs: number }>;
  /** The default isolation level of the role or the database is another one than READ COMMITTED. */
  needsReadCommitted: boolean;
  /** The schema was seen to be new enough for this Worker. It only becomes newer, so one look is enough. */
  fitsSchema: boolean;
}

/** A deployment has one database. Tests have several in one isolate. */
const byDatabase = new Map<string, IsolateState>();

export function isolateStateFor({
  databaseUrl,
  schema,
}: Pick<Settings, "databaseUrl" | "schema">): IsolateState {
  const database = `${databaseUrl} ${schema}`;
  const state = byDatabase.get(database) ?? emptyState();
  byDatabase.set(database, state);
  return state;
}

function emptyState(): IsolateState {
  return {
    nudges: new Map(),
    depths: undefined,
    enqueueErrors: { unwritten: 0, writtenAtMs: 0 },
    keys: new Map(),
    unknownKeysUntilMs: new Map(),
    calls: { second: 0, byKey: new Map() },
    refusedWrites: new Map(),
    needsReadCommitted: false,
    fitsSchema: false,
  };
}
