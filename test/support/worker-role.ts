// The role that the Worker of the tests connects as: it does not own the tables (migrations/functions/worker-role.sql).

export const workerRole = "sluice_worker";

/** A connection string of the owner, with the Worker's role in place of the owner's. */
export function asWorker(url: string): string {
  return url.replace("//sluice:sluice@", `//${workerRole}:sluice@`);
}

export function asOwner(url: string): string {
  return url.replace(`//${workerRole}:sluice@`, "//sluice:sluice@");
}
