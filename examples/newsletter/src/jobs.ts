// The handlers: one of each kind.
import { count, eq, gte, inArray, isNotNull } from "drizzle-orm";
import {
  defineBatchJob,
  defineJob,
  definePulledJob,
  definePushedJob,
  defineReconciledJob,
  defineSchedule,
} from "sluice";
import { complete, enqueueMany } from "sluice/sql";
import { withDatabase } from "./database.ts";
import { sendMails } from "./mail.ts";
import { startJobs } from "./start-jobs.ts";
import { issues, readers } from "./tables.ts";
import * as types from "./types.ts";

const weekSeconds = 7 * 86_400;
const quickly = { baseSeconds: 1, maxSeconds: 600, jitterSeconds: 1 };

function findReader(env: Cloudflare.Env, readerId: string) {
  return withDatabase(env, async (db) => {
    const [reader] = await db.select().from(readers).where(eq(readers.id, readerId));
    return reader;
  });
}

/** Durable steps: the handler waits for a week, and holds nothing meanwhile. */
const welcome = defineJob(types.welcome, {
  timeoutSeconds: 20,
  backoff: quickly,
  run: async ({ readerId }, { jobId, env, step }) => {
    const to = await step.run("look up", async () => (await findReader(env, readerId))?.email);
    if (!to) return "gone";
    const mail = (name: string, subject: string, text: string) =>
      step.run(name, ({ signal }) => sendMails(env, [{ id: `${jobId}:${name}`, to, subject, text }], signal));
    await mail("ask", "Please confirm your address", `${env.PUBLIC_URL}/confirm/${readerId}`);
    const answer = await step.waitFor(types.confirmed, readerId, { timeoutSeconds: weekSeconds });
    if (!answer) return "not confirmed";
    await mail("welcome", "Welcome", `You are a reader since ${answer.at}.`);
    return "welcomed";
  },
});

/** A reconciled job: it is completed when the contact is there, not when the request was sent. */
const syncContact = defineReconciledJob(types.syncContact, {
  timeoutSeconds: 20,
  subrequests: 2,
  backoff: quickly,
  observeAfterSeconds: 5,
  observe: (jobs) =>
    Promise.all(
      jobs.map(async ({ payload: { readerId }, context: { env, signal } }) => {
        if (!(await findReader(env, readerId))) return "gone";
        const { status } = await fetch(`${env.CONTACTS_URL}/${readerId}`, { method: "HEAD", signal });
        return status === 200 ? "there" : "missing";
      }),
    ),
  run: async ({ readerId }, { env, signal }) => {
    const reader = await findReader(env, readerId);
    const body = JSON.stringify({ email: reader?.email });
    await fetch(`${env.CONTACTS_URL}/${readerId}`, { method: "PUT", body, signal });
  },
});

/** A pulled job: it runs in ../puller, outside the Worker. */
const renderIssue = definePulledJob(types.renderIssue);

/** The page, the jobs for all mails and the end of this job commit together. So no mail is enqueued twice. */
const publishIssue = defineJob(types.publishIssue, {
  timeoutSeconds: 20,
  run: async ({ issueId }, context) => {
    const output = await withDatabase(context.env, (db) =>
      db.transaction(async (tx) => {
        const { html } = context.outputs.page;
        await tx.update(issues).set({ html, publishedAt: new Date() }).where(eq(issues.id, issueId));
        const confirmed = isNotNull(readers.confirmedAt);
        const mails = await tx.select({ readerId: readers.id }).from(readers).where(confirmed);
        await enqueueMany(
          tx,
          types.mailIssue,
          mails.map(({ readerId }) => ({ issueId, readerId })),
        );
        await complete(tx, context, { mails: mails.length });
        return { mails: mails.length };
      }),
    );
    await startJobs(context.env);
    return output;
  },
});

/** A batch: one request to the mail service for many jobs. */
const mailIssue = defineBatchJob(types.mailIssue, {
  timeoutSeconds: 20,
  backoff: quickly,
  run: async (jobs, { env, signal }) => {
    const [issueOf, readerOf] = await withDatabase(env, async (db) => {
      const issueIds = jobs.map(({ payload }) => payload.issueId);
      const readerIds = jobs.map(({ payload }) => payload.readerId);
      const someIssues = await db.select().from(issues).where(inArray(issues.id, issueIds));
      const someReaders = await db.select().from(readers).where(inArray(readers.id, readerIds));
      return [
        new Map(someIssues.map((row) => [row.id, row])),
        new Map(someReaders.map((row) => [row.id, row])),
      ];
    });
    const mails = jobs.map(({ payload: { issueId, readerId }, context: { jobId } }) => {
      const issue = issueOf.get(issueId);
      const reader = readerOf.get(readerId);
      return (
        issue?.html && reader && { id: jobId, to: reader.email, subject: issue.subject, text: issue.html }
      );
    });
    await sendMails(
      env,
      mails.filter((mail) => !!mail),
      signal,
    );
    return mails.map((mail) => ({ output: mail ? "sent" : "gone" }));
  },
});

/** A pushed job: a signed request to somebody else's endpoint. */
const announceIssue = definePushedJob(types.announceIssue, {
  timeoutSeconds: 20,
  backoff: quickly,
  url: (env) => env.NEWS_URL,
  secret: (env) => env.NEWS_SECRET,
});

const weeklyReport = defineJob(types.weeklyReport, {
  timeoutSeconds: 20,
  run: async (_, { jobId, schedule, env, signal }) => {
    const end = schedule?.slot ?? new Date();
    const start = new Date(end.getTime() - weekSeconds * 1000);
    const text = await withDatabase(env, async (db) => {
      const [joined] = await db.select({ count: count() }).from(readers).where(gte(readers.joinedAt, start));
      return `${joined?.count} new readers`;
    });
    await sendMails(env, [{ id: jobId, to: env.EDITOR, subject: "Your week", text }], signal);
  },
});

export const jobs = [welcome, syncContact, renderIssue, publishIssue, mailIssue, announceIssue, weeklyReport];

export const schedules = [
  defineSchedule("weekly-report", {
    cron: "0 8 * * mon",
    timeZone: "Europe/Berlin",
    job: types.weeklyReport,
    payload: {},
  }),
];
