// Everything that one isolate remembers between its invocations. It is plain data without promises: a promise belongs to
// the request that made it, and never settles after that request has ended. The platform may end an isolate at any time, so
// nothing depends on this state. It only saves work or delays it.
import type { ApiKey } from "../core/key.ts";
import type { AccessKey } from "./settings/access.ts";
import type { Settings } from "./settings/env.ts";

export interface IsolateState {
  /** The running nudges by queue. An invocation that is cut off cannot remove its entry, so each entry has an end. */
  nudges: Map<string, { untilMs: number; isAskedAgain: boolean }>;
  /** The number of waiting jobs by queue, as last read. */
  depths: { readAtMs: number; byQueue: ReadonlyMap<string, number> } | undefined;
  /** Failed enqueues that are not written to the database yet. */
  enqueueErrors: { unwritten: number; writtenAtMs: number };
  /** API keys by their hash. */
  keys: Map<string, { key: ApiKey; untilMs: number }>;
  /** Hashes of unknown keys. They are kept apart from the keys, so that guesses do not evict the keys in use. */
  unknownKeysUntilMs: Map<string, number>;
  /** The public keys of the team in Cloudflare Access, as last read. */
  accessKeys: { keys: readonly AccessKey[]; readAtMs: number } | undefined;
  /** The number of calls of each API key in the current second. */
  calls: { second: number; byKey: Map<string, number> };
  /** The live workers by queue, as last read, and the owner of each bucket once somebody has asked for it. */
  liveWorkers: Map<string, { ids: Set<string>; owners: string[] | undefined; readAtMs: number }>;
  /** Statements by name that the database refused last time because it could not write. */
  refusedWrites: Map<string, { code: string; atMs: number }>;
  /** What the clock has said: until when the database is held awake, and when it looks for the next job. 0: unknown. */
  clock: {
    awakeUntilMs: number;
    lookAtMs: number;
    /** The call that is under way, and the earliest time that came meanwhile. */
    telling: { untilMs: number; againMs: number | null } | null;
  };
  /** True if the default isolation level of the role or the database is not READ COMMITTED. */
  needsReadCommitted: boolean;
  /** True if the schema is new enough for this Worker. It only becomes newer, so one check is enough. */
  fitsSchema: boolean;
  /** True if no cache answered instead of the database when the isolate looked. */
  isUncached: boolean;
}

/** A deployment has one database. Tests have several in one isolate. The parameters of a URL choose no other database. */
const byDatabase = new Map<string, IsolateState>();

export function isolateStateFor({
  databaseUrl,
  hyperdriveUrl,
  schema,
}: Pick<Settings, "databaseUrl" | "hyperdriveUrl" | "schema">): IsolateState {
  const database = [databaseUrl, hyperdriveUrl, schema].map((part) => part?.replace(/\?.*$/, "")).join(" ");
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
    accessKeys: undefined,
    calls: { second: 0, byKey: new Map() },
    liveWorkers: new Map(),
    refusedWrites: new Map(),
    clock: { awakeUntilMs: 0, lookAtMs: 0, telling: null },
    needsReadCommitted: false,
    fitsSchema: false,
    isUncached: false,
  };
}
