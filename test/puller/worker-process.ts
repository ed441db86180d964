// A worker as users write it, for process.test.ts: `worker-process.ts URL KEY`. It prints the jobs that it starts.
import { createPuller } from "../../src/puller/puller.ts";

const [url = "", key = ""] = process.argv.slice(2);
const puller = createPuller({
  url,
  key,
  handlers: {
    work: async ({ ms }: { ms: number }, { jobId }) => {
      console.log(`started ${jobId}`);
      await new Promise((resolve) => setTimeout(resolve, ms));
      return "finished";
    },
  },
  concurrency: 2,
  waitSeconds: 1,
});
await puller.run();
console.log("stopped");
