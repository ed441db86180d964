// Finds free ports on the loopback address.
import { createServer } from "node:net";

const host = "127.0.0.1";
const lastPort = 65_535;

export function freePort(): Promise<number> {
  return listen(0);
}

export async function isFree(port: number): Promise<boolean> {
  return listen(port).then(
    () => true,
    () => false,
  );
}

export async function firstFreePort(from: number): Promise<number> {
  for (let port = from; port <= lastPort; port++) if (await isFree(port)) return port;
  throw new Error(`no port from ${from} to ${lastPort} is free`);
}

function listen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : port));
    });
  });
}
