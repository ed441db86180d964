// Fails when the Worker's bundle, which `npm run build` wrote, is too large. A larger bundle starts slower, and
// Cloudflare's free plan accepts at most 3 MB.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** 77 of them are the dashboard, and 30 are pg. */
const maxKib = 290;

const kib = Math.ceil(gzipSync(readFileSync("dist/worker.js")).length / 1024);
process.stdout.write(`The Worker's bundle is ${kib} KiB gzipped. The limit is ${maxKib} KiB.\n`);
if (kib > maxKib) process.exitCode = 1;
