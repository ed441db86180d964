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
} as const satisfies Record<string, keyof SqlTypes>;

interface SqlTypes {
  text: string;
  integer: number;
  "double precision": number;
  "timestamp with time zone": Date;
  "text[]": readonly string[];
  /** Ids of jobs: a list, or a list for each slot. */
  jsonb: readonly string[] | Readonly<Record<string, readonly string[]>>;
}

type Name = keyof typeof jobOptions;

/** Null and left out are the same: the database fills in the default. */
export type JobOptions = { [Option in Name]?: SqlTypes[(typeof jobOptions)[Option]] | null | undefined };

/** The same options under their names in SQL and over HTTP. */
export type JobFields = { [Option in Name as SnakeCase<Option>]?: JobOptions[Option] };

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
  for (const { name, field } of optionList) if (hasValue(options[name])) fields[field] = options[name];
  return fields;
}

export function fromFields(fields: JobFields): JobOptions {
  return Object.fromEntries(optionList.map(({ name, field }) => [name, fields[field]]));
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
