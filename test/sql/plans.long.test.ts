// Every hot call uses its index at a million waiting jobs, within the same limits as at 100,000.
import { longSize } from "../support/large-queue.ts";
import { describePlans } from "../support/plans.ts";

describePlans(longSize, { fillWithinMs: 600_000 });
