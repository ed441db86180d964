// The job types that this puller works on, as ../newsletter/src/types.ts declares them. In one repository, share the file.
import { defineType } from "sluice";
import * as z from "zod";

export const types = {
  render_issue: defineType("render_issue", {
    payload: z.object({ markdown: z.string() }),
    output: z.object({ html: z.string() }),
    queue: "render",
  }),
};
