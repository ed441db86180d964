// No worker claims it: it is completed by POST /v1/jobs/:id/resolve, to show a completion from outside.
import * as z from "zod";
import { definePulledJob } from "../define.ts";

export const approval = definePulledJob("approval", { payload: z.looseObject({}) });
