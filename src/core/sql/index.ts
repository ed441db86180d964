// Every statement that Sluice runs, by name.
export { claim } from "./claim.ts";
export { enqueue } from "./enqueue.ts";
export { findJob } from "./find-job.ts";
export { ping } from "./ping.ts";
export { reapLeases } from "./reap.ts";
export { settle } from "./settle.ts";
export { snapshot } from "./snapshot.ts";
