// How large the body of a request may be, in bytes.

/** The payload of one job, as JSON. */
export const maxPayloadBytes = 64 * 1024;

export const bodyLimits = {
  /** One payload, and room for the other fields. */
  job: maxPayloadBytes + 16 * 1024,
  /** Neon's limit for one request, less the text of the statement. */
  batch: 8 * 1024 * 1024,
  /** Holds the output of one job, or the names of 1,000 types. */
  pull: 1024 * 1024,
  /** Holds the names of 1,000 types. */
  key: 128 * 1024,
  alarm: 4096,
} as const;
