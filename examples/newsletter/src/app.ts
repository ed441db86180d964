// The app itself. Each route writes its own rows and enqueues its jobs in one transaction.
import { eq, TransactionRollbackError } from "drizzle-orm";
import { Hono } from "hono";
import { enqueue, enqueueFlow, signal } from "sluice/sql";
import * as z from "zod";
import { withDatabase } from "./database.ts";
import { startJobs } from "./start-jobs.ts";
import { issues, readers } from "./tables.ts";
import { announceIssue, confirmed, publishIssue, renderIssue, syncContact, welcome } from "./types.ts";

const newReader = z.object({ email: z.email() });
const newIssue = z.object({ subject: z.string().min(1), markdown: z.string() });

export const app = new Hono<{ Bindings: Cloudflare.Env }>();

app.onError((error, c) => {
  if (error instanceof z.ZodError) return c.json({ error: z.prettifyError(error) }, 400);
  if (error instanceof TransactionRollbackError) return c.json({ error: "it is there already" }, 409);
  console.error(error);
  return c.json({ error: "something went wrong" }, 500);
});

app.post("/readers", async (c) => {
  const { email } = newReader.parse(await c.req.json());
  const id = crypto.randomUUID();
  await withDatabase(c.env, (db) =>
    db.transaction(async (tx) => {
      await enqueue(tx, welcome, { readerId: id });
      const added = await tx.insert(readers).values({ id, email }).onConflictDoNothing().returning();
      if (added.length === 0) tx.rollback(); // the job goes with it
    }),
  );
  c.executionCtx.waitUntil(startJobs(c.env));
  return c.json({ id }, 201);
});

app.get("/confirm/:id", async (c) => {
  const id = z.uuid().parse(c.req.param("id"));
  const confirmedAt = new Date();
  const isReader = await withDatabase(c.env, (db) =>
    db.transaction(async (tx) => {
      const [reader] = await tx.update(readers).set({ confirmedAt }).where(eq(readers.id, id)).returning();
      if (!reader) return false;
      await signal(tx, confirmed.name, id, { at: confirmedAt.toISOString() });
      // Changes of one reader reach the other system one at a time and in order.
      await enqueue(tx, syncContact, { readerId: id }, { partitionKey: id });
      return true;
    }),
  );
  if (!isReader) return c.text("There is no such reader.", 404);
  c.executionCtx.waitUntil(startJobs(c.env));
  return c.text("Thank you.");
});

app.post("/issues", async (c) => {
  const { subject, markdown } = newIssue.parse(await c.req.json());
  const issueId = crypto.randomUUID();
  const flowId = await withDatabase(c.env, (db) =>
    db.transaction(async (tx) => {
      await tx.insert(issues).values({ id: issueId, subject });
      const flow = await enqueueFlow(tx, (flow) => {
        const page = flow.add(renderIssue, { markdown });
        const published = flow.add(publishIssue, { issueId }, { after: { page } });
        flow.add(announceIssue, { issueId, subject }, { after: { published } });
      });
      return flow.flowId;
    }),
  );
  c.executionCtx.waitUntil(startJobs(c.env));
  return c.json({ id: issueId, flowId }, 202);
});
