// The kinds of registered workers.

export const workerKinds = ["puller", "drain"] as const;
export type WorkerKind = (typeof workerKinds)[number];
