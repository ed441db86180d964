// pgmq with its published SQL, from the npm package @electric-sql/pglite-pgmq. It reads a batch and deletes it by its ids. A
// message that failed is made visible again. It has no priorities, and keeps no history. Ordered and shared keys are its
// groups, read by turns between them. Its index on the headers is left out, since these reads cannot use it.
import { execFileSync } from "node:child_process";
import type pg from "pg";
import { packageFile } from "../peers.ts";
import { connect, connectAll, openPool } from "./connections.ts";
import { type Connection, poll } from "./poll.ts";
import { type BenchPayload, type Keys, leaseSeconds, producers, type System } from "./system.ts";

interface Message {
  msg_id: string;
  message: BenchPayload;
}

const queue = "bench";
const extension = "share/postgresql/extension";
const rowsPerFill = 100_000;

export function pgmq(): System {
  const archive = packageFile("@electric-sql/pglite-pgmq", "dist/pgmq.tar.gz");
  const fileOf = (path: string) =>
    execFileSync("tar", ["-xzOf", archive, `${extension}/${path}`], { encoding: "utf8" });
  const version = /default_version = '(.+)'/.exec(fileOf("pgmq.control"))?.[1] ?? "unknown";
  return {
    name: "pgmq",
    version,
    hotTables: [`pgmq.q_${queue}`],
    jobTables: [`pgmq.q_${queue}`],
    keyUses: ["ordered", "shared"],
    async install(url) {
      const client = await connect(url);
      await client.query(fileOf(`pgmq--${version}.sql`));
      await client.query("select pgmq.create($1)", [queue]);
      await client.end();
    },

    async open(url, keys) {
      const pool = openPool(url, producers);
      return {
        async enqueue(payloads) {
          if (keys) await pool.query({ ...statements.sendGrouped, values: groupedValues(payloads) });
          else if (payloads.length === 1)
            await pool.query({ ...statements.send, values: [queue, JSON.stringify(payloads[0])] });
          else
            await pool.query({
              ...statements.sendBatch,
              values: [queue, payloads.map((payload) => JSON.stringify(payload))],
            });
        },
        async work(options) {
          const clients = await connectAll(url, options.connections);
          return poll(
            clients.map((client) => connectionOf(client, keys)),
            options,
          );
        },
        async fill({ waiting, scheduled }) {
          for (const [jobs, delaySeconds] of [
            [waiting, 0],
            [scheduled, 3_600],
          ] as const) {
            for (let from = 0; from < jobs; from += rowsPerFill)
              await pool.query(fillText, [queue, delaySeconds, from, Math.min(jobs, from + rowsPerFill) - 1]);
          }
        },
        async unfinished() {
          const { rows } = await pool.query(`select count(*)::int as jobs from pgmq.q_${queue}`);
          return rows[0].jobs;
        },
        close: () => pool.end(),
      };
    },
  };
}

const statements = {
  send: { name: "send", text: "select pgmq.send($1, $2::jsonb)" },
  sendBatch: { name: "send_batch", text: "select pgmq.send_batch($1, $2::jsonb[])" },
  sendGrouped: { name: "send_grouped", text: "select pgmq.send_batch($1, $2::jsonb[], $3::jsonb[])" },
  readGrouped: { name: "read_grouped", text: "select msg_id, message from pgmq.read_grouped_rr($1, $2, $3)" },
  read: { name: "read", text: "select msg_id, message from pgmq.read($1, $2, $3)" },
  delete: { name: "delete", text: "select pgmq.delete($1, $2::bigint[])" },
  setVisible: {
    name: "set_vt",
    text: "select pgmq.set_vt($1, id, 0) from unnest($2::bigint[]) as id",
  },
};

const fillText = `
  select count(*)
  from pgmq.send_batch(
    $1::text,
    array(select jsonb_build_object('n', n, 'address', 'someone@example.com',
                                    'subject', 'a subject of a common length', 'template', 'welcome')
          from generate_series($3::int, $4::int) as n),
    $2::int)`;

function groupedValues(payloads: readonly BenchPayload[]): unknown[] {
  return [
    queue,
    payloads.map((payload) => JSON.stringify(payload)),
    payloads.map(({ key }) => JSON.stringify({ "x-pgmq-group": key })),
  ];
}

function connectionOf(client: pg.Client, keys: Keys | undefined): Connection<Message> {
  const idsOf = (messages: readonly Message[]) => messages.map((message) => message.msg_id);
  return {
    async claim(limit) {
      const { rows } = await client.query<Message>({
        ...(keys ? statements.readGrouped : statements.read),
        values: [queue, leaseSeconds, limit],
      });
      return rows;
    },
    payloadOf: ({ message }) => message,
    async settle(done, failed) {
      if (done.length > 0) await client.query({ ...statements.delete, values: [queue, idsOf(done)] });
      if (failed.length > 0) await client.query({ ...statements.setVisible, values: [queue, idsOf(failed)] });
    },
    close: () => client.end(),
  };
}
