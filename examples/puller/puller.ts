import { marked } from "marked";
import { createPuller } from "sluice/puller";
import type { types } from "./types.ts";

const { SLUICE_URL: url = "http://127.0.0.1:8787", SLUICE_KEY: key = "" } = process.env;

const puller = createPuller<typeof types>({
  url,
  key,
  queue: "render",
  handlers: { render_issue: async ({ markdown }) => ({ html: await marked(markdown) }) },
});
await puller.run(); // until SIGTERM or SIGINT
