// `npm run load`: measures enqueues over HTTP against a running stack, one job and a hundred at a time. The address comes
// from .sluice/dev.json, or from --url and --key.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const usage = `usage: npm run load -- [--url URL --key KEY] [--requests N] [--callers N]

Measures POST /v1/jobs and POST /v1/jobs/batch against a running stack (npm run dev).
  --requests N   of each kind (default 500)
  --callers N    at one time (default 8)`;

const { values } = parseArgs({
  options: {
    url: { type: "string" },
    key: { type: "string" },
    requests: { type: "string", default: "500" },
    callers: { type: "string", default: "8" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(usage);
} else {
  const { url, key } = values.url && values.key ? { url: values.url, key: values.key } : running();
  const load = { url, key, requests: Number(values.requests), callers: Number(values.callers) };
  const payload = { text: "x".repeat(100) };
  // Due tomorrow, so that no drain runs beside the enqueues.
  const job = { type: "echo", payload, delay_seconds: 86_400 };
  await measure("one job", load, "/v1/jobs", job);
  await measure("100 jobs", load, "/v1/jobs/batch", { jobs: Array.from({ length: 100 }, () => job) });
}

function running(): { url: string; key: string } {
  try {
    const dev = JSON.parse(readFileSync(new URL("../../.sluice/dev.json", import.meta.url), "utf8"));
    return { url: dev.url, key: dev.admin_key };
  } catch {
    console.error(`no stack is running here: start one with npm run dev\n\n${usage}`);
    process.exit(1);
  }
}

async function measure(
  name: string,
  { url, key, requests, callers }: { url: string; key: string; requests: number; callers: number },
  path: string,
  body: object,
): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const text = JSON.stringify(body);
  const times: number[] = [];
  let left = requests;
  const call = async () => {
    while (left-- > 0) {
      const startedMs = performance.now();
      const response = await fetch(url + path, { method: "POST", headers, body: text });
      await response.text();
      if (response.status !== 201) throw new Error(`${path} answered ${response.status}`);
      times.push(performance.now() - startedMs);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: callers }, call));
  const seconds = (performance.now() - startedMs) / 1000;
  times.sort((a, b) => a - b);
  const at = (share: number) => `${(times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1)} ms`;
  console.log(
    `${name.padEnd(9)} p50 ${at(0.5)}  p99 ${at(0.99)}  ${(requests / seconds).toFixed(0)} requests/s`,
  );
}
