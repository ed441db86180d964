// Enqueues by SQL: the reader and the job are there together, or neither is.
import { after } from "next/server";
import postgres from "postgres";
import { enqueue, nudge } from "sluice/sql";
import * as z from "zod";
import { welcome } from "../../../lib/types.ts";

const { DATABASE_URL = "", SLUICE_URL = "", SLUICE_KEY = "" } = process.env;
const sql = postgres(DATABASE_URL);
const newReader = z.object({ email: z.email() });

export async function POST(request: Request): Promise<Response> {
  const { data, error } = newReader.safeParse(await request.json());
  if (error) return Response.json({ error: z.prettifyError(error) }, { status: 400 });
  const id = crypto.randomUUID();
  try {
    await sql.begin(async (tx) => {
      await enqueue(tx, welcome, { readerId: id });
      await tx`insert into readers (id, email) values (${id}, ${data.email})`;
    });
  } catch (error) {
    const isThere = error instanceof postgres.PostgresError && error.code === "23505";
    if (!isThere) throw error;
    return Response.json({ error: "this reader is there already" }, { status: 409 });
  }
  after(() => nudge({ SLUICE_URL, SLUICE_KEY })); // starts the job at once; without it the next cron does
  return Response.json({ id }, { status: 201 });
}
