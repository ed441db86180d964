// The role that the Worker of the tests uses. It does not own the tables (migrations/functions/worker-role.sql).

export const workerRole = "sluice_worker";

/** Turns the owner's connection string into one for the Worker's role. */
export function asWorker(url: string): string {
  return url.replace("//sluice:sluice@", `//${workerRole}:sluice@`);
}

export function asOwner(url: string): string {
  return url.replace(`//${workerRole}:sluice@`, "//sluice:sluice@");
}
