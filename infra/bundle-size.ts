// Fails when the Worker's bundle, which `npm run build` wrote, is too large. A larger bundle starts slower, and
// Cloudflare's free plan accepts at most 3 MB.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** 80 of them are for the dashboard, 30 for pg. */
const maxKib = 300;

const kib = Math.ceil(gzipSync(readFileSync("dist/worker.js")).length / 1024);
process.stdout.write(`The Worker's bundle is ${kib} KiB gzipped. The limit is ${maxKib} KiB.\n`);
if (kib > maxKib) process.exitCode = 1;
