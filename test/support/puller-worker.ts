// The deployment of the puller tests. It is bundled and runs in workerd.
import * as z from "zod";
import { definePulledJob, sluice } from "../../src/index.ts";

const payload = z.looseObject({});
const backoff = { baseSeconds: 60, jitterSeconds: 0 };

export default sluice({
  jobs: ["work", "other"].map((type) => definePulledJob(type, { payload, backoff })),
});
