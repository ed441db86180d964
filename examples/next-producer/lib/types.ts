// The job types that this app enqueues, as ../newsletter/src/types.ts declares them. In one repository, share the file.
import { defineType } from "sluice";
import * as z from "zod";

export const welcome = defineType("welcome", { payload: z.object({ readerId: z.uuid() }) });

export const mailIssue = defineType("mail_issue", {
  payload: z.object({ issueId: z.uuid(), readerId: z.uuid() }),
  queue: "mail",
});
