// The lines of `npm run dev` about jobs.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createOutputFilter } from "../../src/local/worker-output.ts";

const id = "01900000-0000-7000-8000-000000000001";
const lines: string[] = [];
let write: (line: string) => void;

beforeEach(() => {
  vi.useFakeTimers();
  lines.length = 0;
  write = createOutputFilter((line) => void lines.push(line));
});
afterEach(() => {
  vi.useRealTimers();
});

const ended = (...jobs: object[]) => JSON.stringify({ event: "jobs ended", jobs });
const job = { job_id: id, type: "echo", status: "completed", ms: 12.4 };

test("a job that ends or fails is one line, without what could move the cursor", () => {
  write(ended(job, { ...job, status: "dead", message: "no\u001b[31m way\nat x" }));
  const failed = {
    event: "attempt failed",
    job_id: id,
    type: "flaky",
    attempt: 1,
    max_attempts: 5,
    message: "busy",
  };
  write(`▲ [WARNING] ${JSON.stringify({ ...failed, ms: 3, status: "pending" })}`);
  expect(lines).toEqual([
    `echo ${id} completed, 12 ms`,
    `echo ${id} dead, 12 ms: no way`,
    `flaky ${id} failed and retried (attempt 1 of 5), 3 ms: busy`,
  ]);
});

test("a burst shows ten lines a second, and sums up the rest", () => {
  for (let n = 0; n < 30; n++) write(ended(...Array.from({ length: 100 }, () => job)));
  write(ended({ ...job, status: "cancelled" }));
  expect(lines).toHaveLength(10);
  vi.advanceTimersByTime(1000);
  expect(lines.slice(10)).toEqual(["… and more: 2990 completed, 1 cancelled"]);
  write(ended(job));
  expect(lines).toHaveLength(12);
});

test("a failing canary is no line, and all other lines are shown as they are", () => {
  const canary = {
    event: "attempt failed",
    job_id: id,
    type: "sluice.canary",
    message: "x",
    status: "pending",
  };
  write(JSON.stringify(canary));
  write('{"event":"mail sent","type":"echo"}');
  expect(lines).toEqual(['{"event":"mail sent","type":"echo"}']);
});
