// A worker in Node, Deno and Bun: `worker.js URL KEY QUEUE` works on the queue until it gets a SIGTERM.
import { createPuller } from "../../src/puller/puller.ts";

const [url = "", key = "", queue = ""] = process.argv.slice(2);
const puller = createPuller({
  url,
  key,
  queue,
  handlers: {
    double: async ({ n }: { n: number }) => {
      if (n === 0) console.log("started");
      await new Promise((resolve) => setTimeout(resolve, n === 0 ? 500 : 0));
      return { doubled: n * 2 };
    },
  },
  concurrency: 5,
});
await puller.run();
console.log("stopped");
