// What the books count, by name. It stands apart from the statement, so that whoever needs the names alone loads no SQL.

export const booked = [
  "enqueued",
  "blocked",
  "pending",
  "scheduled",
  "leased",
  "completed",
  "failed",
  "dead",
  "discarded",
  "cancelled",
  "expired",
] as const;
