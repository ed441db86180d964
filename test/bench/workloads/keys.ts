// keys: jobs of one key run one at a time, in order. The parts have a file each.
import { drainKeys, drainOneKey } from "./keys-drain.ts";
import { pinKeys } from "./keys-pin.ts";
import { claimOnRing } from "./keys-ring.ts";
import { logOfKeys } from "./keys-wal.ts";
import type { Workload } from "./workload.ts";

export const keys: Workload = {
  name: "keys",
  about: "ordered keys: 10,000 keys, one hot key, log, under a pin, on the ring",
  async run(bench) {
    await drainKeys(bench);
    await drainOneKey(bench);
    await logOfKeys(bench);
    await pinKeys(bench);
    await claimOnRing(bench);
  },
};
