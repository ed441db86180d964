// The deployable Worker: the example jobs, and nothing else. Put your own in their place.
import { sluice } from "./index.ts";
import { echo } from "./jobs/examples/echo.ts";
import { fatal } from "./jobs/examples/fatal.ts";
import { flaky } from "./jobs/examples/flaky.ts";
import { sleep } from "./jobs/examples/sleep.ts";

export default sluice({ jobs: [echo, sleep, flaky, fatal] });
