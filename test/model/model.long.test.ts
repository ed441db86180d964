// The model of the queue with commands that nobody has drawn before. SLUICE_MODEL_RUNS says how many times.
import { describeModel } from "./run-model.ts";

describeModel({ runs: Number(process.env.SLUICE_MODEL_RUNS ?? 4_000), timeoutMs: 20 * 60_000 });
