// A small pooler that works as PgBouncer does in transaction mode: a server connection belongs to a client from the first
// message of a transaction until ReadyForQuery says that none is open. It reuses the last returned connection first and
// resets nothing, so the next client finds session state that the last one left.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface TransactionPooler {
  url: string;
  close(): Promise<void>;
}

interface Server {
  socket: Socket;
  greeting: Buffer;
  client: Client | undefined;
}

interface Client {
  socket: Socket;
  server: Server | undefined;
  /** Messages that the client sent while no server connection was free. */
  unsent: Buffer[];
  /** The number of messages that still need a ReadyForQuery. */
  unanswered: number;
}

const sslRequest = 80877103;
const protocolVersion = 196608;
const [query, sync, terminate, readyForQuery, idle] = Buffer.from("QSXZI");

export async function startTransactionPooler(url: string, servers: number): Promise<TransactionPooler> {
  const target = new URL(url);
  const opened = await Promise.all(Array.from({ length: servers }, () => openServer(target)));
  const pool = createPool(opened);
  const sockets = new Set(opened.map(({ socket }) => socket));
  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    serveClient(socket, pool, opened[0]?.greeting ?? Buffer.alloc(0));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const own = new URL(url);
  own.port = String((listener.address() as AddressInfo).port);
  return {
    url: own.href,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

interface Pool {
  send(client: Client, message: Buffer): void;
}

function createPool(servers: readonly Server[]): Pool {
  const free = [...servers];
  const queue: Client[] = [];

  const lend = (server: Server, client: Client) => {
    server.client = client;
    client.server = server;
    for (const message of client.unsent.splice(0)) server.socket.write(message);
  };
  const giveBack = (server: Server, client: Client) => {
    client.server = undefined;
    server.client = undefined;
    const next = queue.shift();
    if (next) lend(server, next);
    else free.push(server);
  };
  for (const server of servers) {
    onMessages(server.socket, (message) => {
      const { client } = server;
      if (!client) return;
      client.socket.write(message);
      if (message[0] !== readyForQuery) return;
      client.unanswered--;
      if (message[5] === idle && client.unanswered === 0) giveBack(server, client);
    });
  }
  return {
    send(client, message) {
      if (message[0] === query || message[0] === sync) client.unanswered++;
      if (client.server) return void client.server.socket.write(message);
      client.unsent.push(message);
      const server = free.pop();
      if (server) lend(server, client);
      else if (!queue.includes(client)) queue.push(client);
    },
  };
}

function serveClient(socket: Socket, pool: Pool, greeting: Buffer): void {
  const client: Client = { socket, server: undefined, unsent: [], unanswered: 0 };
  let isGreeted = false;
  socket.on("error", () => {});
  // As in PgBouncer, an open transaction ends with its server connection when the client disconnects.
  socket.on("close", () => client.server?.socket.destroy());
  onMessages(
    socket,
    (message) => {
      if (isGreeted && message[0] === terminate) return void socket.end();
      if (isGreeted) return pool.send(client, message);
      if (message.readInt32BE(4) === sslRequest) return void socket.write("N");
      isGreeted = true;
      socket.write(greeting);
    },
    () => (isGreeted ? 1 : 0),
  );
}

/** Every client gets the greeting that Postgres sent to the first of these connections. */
async function openServer(target: URL): Promise<Server> {
  const socket = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
  socket.on("error", () => {});
  const parameters = ["user", target.username, "database", target.pathname.slice(1), ""].join("\0");
  const body = Buffer.from(`${parameters}\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length, 0);
  head.writeInt32BE(protocolVersion, 4);
  socket.write(Buffer.concat([head, body]));
  const greeting: Buffer[] = [];
  await new Promise<void>((resolve) => {
    const stop = onMessages(socket, (message) => {
      greeting.push(message);
      if (message[0] === readyForQuery) {
        stop();
        resolve();
      }
    });
  });
  return { socket, greeting: Buffer.concat(greeting), client: undefined };
}

/** Splits the stream into messages: a type of one byte, which the first message lacks, then a length that includes itself. */
function onMessages(socket: Socket, take: (message: Buffer) => void, typeBytes = () => 1): () => void {
  let rest: Buffer = Buffer.alloc(0);
  const listen = (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const at = typeBytes();
      const end = rest.length < at + 4 ? Number.POSITIVE_INFINITY : at + rest.readInt32BE(at);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      take(message);
    }
  };
  socket.on("data", listen);
  return () => socket.off("data", listen);
}
