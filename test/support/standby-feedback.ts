// A standby that only tells the primary which snapshot its queries need. It implements just that part of the replication
// protocol.
import { connect } from "node:net";

export interface Standby {
  stop(): void;
}

export async function startStandby(
  port: number,
  { user, lsn, xmin }: { user: string; lsn: string; xmin: number },
): Promise<Standby> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const messages = messagesOf(socket);
  const until = async (type: string) => {
    for (;;) {
      const { value, done } = await messages.next();
      if (done) throw new Error("the server hung up");
      if (value.type === "E") throw new Error(value.body.toString());
      if (value.type === type) return;
    }
  };
  socket.write(startup({ user, replication: "true" }));
  await until("Z");
  socket.write(message("Q", Buffer.from(`START_REPLICATION PHYSICAL ${lsn}\0`)));
  await until("W");
  socket.write(message("d", feedback(xmin)));
  return { stop: () => socket.destroy() };
}

/** The message "hot standby feedback": the time, the oldest transaction id that queries need, and no id for catalogs. */
function feedback(xmin: number): Buffer {
  const body = Buffer.alloc(25);
  body.write("h");
  body.writeUInt32BE(xmin, 9);
  return body;
}

function startup(parameters: Record<string, string>): Buffer {
  const body = Buffer.from(`${Object.entries(parameters).flat().join("\0")}\0\0`);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(head.length + body.length);
  head.writeUInt32BE(3 << 16, 4); // the version of the protocol
  return Buffer.concat([head, body]);
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

async function* messagesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<{ type: string; body: Buffer }> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
      const length = rest.readUInt32BE(1) + 1;
      yield { type: rest.toString("latin1", 0, 1), body: rest.subarray(5, length) };
      rest = rest.subarray(length);
    }
  }
}
