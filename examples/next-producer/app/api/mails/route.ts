// Enqueues over HTTP: no database is needed. A second request for the same mail gets the same job.
import { createClient } from "sluice/client";
import { mailIssue } from "../../../lib/types.ts";

const { SLUICE_URL: url = "", SLUICE_KEY: key = "" } = process.env;
const queue = createClient({ url, key });

export async function POST(request: Request): Promise<Response> {
  const { data, error } = mailIssue.payload.safeParse(await request.json());
  if (error) return Response.json({ error: error.issues }, { status: 400 });
  const idempotencyKey = `again:${data.issueId}:${data.readerId}`;
  const jobId = await queue.enqueue(mailIssue, data, { idempotencyKey });
  return Response.json({ jobId }, { status: 202 });
}

export async function GET(request: Request): Promise<Response> {
  const id = new URL(request.url).searchParams.get("job") ?? "";
  const { status, output } = await queue.get(id);
  return Response.json({ status, output });
}
