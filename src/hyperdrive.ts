// sluice/hyperdrive: any Postgres, through the Worker's binding HYPERDRIVE. The `sluice` of this path brings no other
// driver into the bundle.
import { hyperdriveDatabase } from "./edge/hyperdrive/pg-transport.ts";
import { createSluice, type SluiceOptions, type SluiceWorker } from "./edge/sluice.ts";

/** For a Worker that uses Hyperdrive if it has the binding, and else Neon's HTTP: `sluice({ database: hyperdrive })`. */
export const hyperdrive = hyperdriveDatabase;

export function sluice(options: Omit<SluiceOptions, "database">): SluiceWorker {
  return createSluice([hyperdrive], options);
}
