// The model of the queue, in a short form that draws the same commands each time.
import { describeModel } from "./run-model.ts";

describeModel({ runs: 300, timeoutMs: 240_000 });
