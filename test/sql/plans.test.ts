// Every hot call uses its index at 100,000 waiting jobs. plans.long.test.ts does the same at a million.
import { ciSize } from "../support/large-queue.ts";
import { describePlans } from "../support/plans.ts";

describePlans(ciSize, { fillWithinMs: 60_000 });
