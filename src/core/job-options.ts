// The options of a new job, and their limits. An option's name is camelCase in TypeScript, snake_case over HTTP and in
// SQL. test/sql/job-options.test.ts compares this list with the HTTP API and with the database.

/** The type of each option as an argument of `sluice.enqueue`. */
export const jobOptions = {
  queue: "text",
  priority: "integer",
  maxAttempts: "integer",
  delaySeconds: "double precision",
  scheduledAt: "timestamp with time zone",
  expiresAt: "timestamp with time zone",
  idempotencyKey: "text",
  partitionKey: "text",
  fairKey: "text",
  traceparent: "text",
  tags: "text[]",
  after: "jsonb",
  onBlockerDead: "text",
  debounce: "jsonb",
  throttle: "jsonb",
} as const satisfies Record<string, keyof SqlTypes>;

interface SqlTypes {
  text: string;
  integer: number;
  "double precision": number;
  "timestamp with time zone": Date;
  "text[]": readonly string[];
  jsonb: ObjectOptions[keyof ObjectOptions];
}

interface ObjectOptions {
  /** Ids of jobs: a list, or a list for each slot. */
  after: readonly string[] | Readonly<Record<string, readonly string[]>>;
  debounce: Debounce;
  throttle: Throttle;
}

export const debounceModes = ["first", "last", "merge"] as const;
export type DebounceMode = (typeof debounceModes)[number];

/** Calls with one key, of one queue and type, make one job as long as that waits for its first run. */
export type Debounce = PlainDebounce | MergeDebounce;

export interface PlainDebounce {
  key: string;
  /** What happens to the waiting job. first: it is kept. last: a new one replaces it, and it waits `seconds` again. */
  mode: "first" | "last";
  /** How long the job waits. */
  seconds: number;
  /** For `last`: it is due this long after the first call, whatever follows. Without it there is no limit. */
  maxWaitSeconds?: number | undefined;
}

/** The waiting job's payload is a list, `{ items: [ … ] }`, and gets one more. */
export interface MergeDebounce {
  key: string;
  mode: "merge";
  /** How long the job waits after the first call. */
  seconds: number;
  /** A list of this length is due at once, and the next call makes a new job. Default 100. */
  maxItems?: number | undefined;
}

/** At most one job for each key, of one queue and type, in so many seconds. */
export interface Throttle {
  key: string;
  seconds: number;
}

/** What has become of a call with a debounce or a throttle. Only `created` and `replaced` have made a job. */
export const enqueueOutcomes = ["created", "kept", "replaced", "merged", "throttled"] as const;
export type EnqueueOutcome = (typeof enqueueOutcomes)[number];

type Name = keyof typeof jobOptions;
type ValueOf<Option extends Name> = Option extends keyof ObjectOptions
  ? ObjectOptions[Option]
  : SqlTypes[(typeof jobOptions)[Option]];

/** Null and left out are the same: the database fills in the default. */
export type JobOptions = { [Option in Name]?: ValueOf<Option> | null | undefined };

/** The same options under their names in SQL and over HTTP. */
export type JobFields = {
  [Option in Name as SnakeCase<Option>]?: Option extends "debounce"
    ? DebounceFields | null | undefined
    : JobOptions[Option];
};

export interface DebounceFields {
  key: string;
  mode: DebounceMode;
  seconds: number;
  max_wait_seconds?: number | null | undefined;
  max_items?: number | null | undefined;
}

type SnakeCase<Text extends string> = Text extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : "";

/** The limits of a new job. migrations/functions/check.sql and lanes.sql have the same. */
export const jobLimits = {
  namePattern: /^[a-z][a-z0-9_.-]{0,62}$/,
  nameRule: 'lower case letters, digits, ".", "_" and "-", at most 63, a letter first',
  maxPayloadBytes: 64 * 1024,
  maxPriority: 9,
  maxAttempts: 20,
  /** 100 years. A delay and a time have the same limit, since they are two ways to say the same. */
  maxDelaySeconds: 3_155_760_000,
  maxKeyLength: 255,
  maxTags: 20,
  maxTagLength: 63,
  /** The most jobs that one waits for, in one request. */
  maxBlockers: 10_000,
  maxFlowJobs: 1000,
  /** The most payloads in a merged list. */
  maxItems: 1000,
  slotPattern: /^[a-zA-Z][a-zA-Z0-9_]{0,62}$/,
  slotRule: 'letters, digits and "_", at most 63, a letter first',
} as const;

export const optionList = (Object.keys(jobOptions) as Name[]).map((name) => ({
  name,
  field: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) as keyof JobFields,
  sqlType: jobOptions[name],
}));

/** Only the options that have a value. */
export function toFields(options: JobOptions): JobFields {
  const fields: Record<string, unknown> = {};
  for (const { name, field } of optionList)
    if (hasValue(options[name])) fields[field] = toField(options, name);
  return fields;
}

/** An option's value as SQL and HTTP have it. */
export function toField(options: JobOptions, name: Name): unknown {
  return name === "debounce" && options.debounce ? debounceFields(options.debounce) : options[name];
}

export function debounceFields(debounce: Debounce): DebounceFields {
  const { maxWaitSeconds, maxItems, ...fields } = debounce as PlainDebounce & Pick<MergeDebounce, "maxItems">;
  return { ...fields, max_wait_seconds: maxWaitSeconds, max_items: maxItems };
}

export function fromFields({ debounce, ...fields }: JobFields): JobOptions {
  const options = Object.fromEntries(
    optionList.map(({ name, field }) => [name, (fields as JobFields)[field]]),
  );
  return debounce ? { ...options, debounce: fromDebounceFields(debounce) } : options;
}

function fromDebounceFields({ max_wait_seconds, max_items, ...debounce }: DebounceFields): Debounce {
  const limits = { maxWaitSeconds: max_wait_seconds ?? undefined, maxItems: max_items ?? undefined };
  return { ...debounce, ...limits } as Debounce;
}

/** The payload as the handler gets it: with the mode `merge`, a list of what was given. */
export function storedPayload<Payload>(
  payload: Payload,
  { debounce }: Pick<JobOptions, "debounce">,
): Payload | { items: Payload[] } {
  return debounce?.mode === "merge" ? { items: [payload] } : payload;
}

/** Two lists or two dates count as different: nobody needs to compare them. */
export function haveEqualOptions(some: JobOptions, others: JobOptions): boolean {
  return optionList.every(({ name }) => {
    const [one, other] = [some[name], others[name]];
    return hasValue(one) ? one === other && typeof one !== "object" : !hasValue(other);
  });
}

/** An empty list is no value: that a job has no tags is the default. */
export function hasValue(value: JobOptions[Name]): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}
