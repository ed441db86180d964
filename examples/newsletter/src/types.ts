// The job types without their handlers. This file is all that other producers and pullers need.
import { defineSignal, defineType } from "sluice";
import * as z from "zod";

const reader = z.object({ readerId: z.uuid() });

/** Asks a new reader to confirm the address, waits for that, and welcomes the reader. */
export const welcome = defineType("welcome", { payload: reader });

/** The reader has confirmed the address. Its key is the reader's id. */
export const confirmed = defineSignal("confirmed", z.object({ at: z.iso.datetime() }));

/** Brings the reader into the contacts of another system. */
export const syncContact = defineType("sync_contact", { payload: reader });

/** Makes a page of an issue. A puller does that. */
export const renderIssue = defineType("render_issue", {
  payload: z.object({ markdown: z.string() }),
  output: z.object({ html: z.string() }),
  queue: "render",
});

/** Stores the page, and enqueues a mail for each reader. */
export const publishIssue = defineType("publish_issue", {
  payload: z.object({ issueId: z.uuid() }),
  output: z.object({ mails: z.int() }),
  after: { page: renderIssue },
});

/** Tells another system that the issue is out. */
export const announceIssue = defineType("announce_issue", {
  payload: z.object({ issueId: z.uuid(), subject: z.string() }),
  after: { published: publishIssue },
});

/** Mails an issue to one reader. */
export const mailIssue = defineType("mail_issue", {
  payload: z.object({ issueId: z.uuid(), readerId: z.uuid() }),
  queue: "mail",
});

/** Tells the editor how many readers have joined in the last week. */
export const weeklyReport = defineType("weekly_report", { payload: z.object({}) });
