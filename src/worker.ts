// The deployable Worker: the example jobs and queues, and nothing else. Put your own in their place.
import { hyperdrive } from "./hyperdrive.ts";
import { defineQueue, sluice } from "./index.ts";
import { approval } from "./jobs/examples/approval.ts";
import { echo } from "./jobs/examples/echo.ts";
import { fatal } from "./jobs/examples/fatal.ts";
import { flaky } from "./jobs/examples/flaky.ts";
import { relay } from "./jobs/examples/relay.ts";
import { sleep } from "./jobs/examples/sleep.ts";
import { steps } from "./jobs/examples/steps.ts";
import { sum } from "./jobs/examples/sum.ts";

export { SluiceClock, SluiceProducer } from "./clock.ts";

export default sluice({
  jobs: [echo, sleep, flaky, fatal, sum, relay, approval, steps],
  database: hyperdrive, // with the binding HYPERDRIVE any Postgres, without it Neon's HTTP
  queues: [
    defineQueue("ordered"),
    defineQueue("ordered_pass", { partitions: { onDead: "pass" } }),
    defineQueue("fair", { shares: { concurrency: 4 } }),
  ],
});
