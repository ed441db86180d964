// The job types of a small web shop that does not exist. They wait a little in place of work, and fail where a payload says so.
import * as z from "zod";
import { defineJob, definePulledJob, FatalError } from "../index.ts";

const backoff = { baseSeconds: 4, maxSeconds: 30, jitterSeconds: 2 };

export const sendReceipt = defineJob("send_receipt", {
  queue: "email",
  payload: z.object({ order_id: z.int(), to: z.string() }),
  maxAttempts: 3,
  backoff,
  timeoutSeconds: 20,
  run: async ({ order_id, to }, { signal }) => {
    await work(60, 400, signal);
    if (to.endsWith("@nowhere.example")) throw new FatalError(`550 5.1.1 no such mailbox: <${to}>`);
    if (to.endsWith("@slow.example")) throw new Error("421 the mail server closed the connection");
    return { message_id: `${order_id}@shop.example` };
  },
});

export const resizeImage = defineJob("resize_image", {
  queue: "images",
  payload: z.object({ file: z.string(), width: z.int() }),
  maxAttempts: 2,
  backoff,
  concurrency: 4,
  run: async ({ file, width }, { signal }) => {
    await work(150, 1500, signal);
    if (file.endsWith(".heic")) throw new FatalError(`cannot decode ${file}: image/heic is not supported`);
    if (width > 8000) throw new Error("the encoder failed", { cause: new Error(`${width} px need 1.2 GB`) });
    return { file: file.replace(/\.\w+$/, `-${width}.webp`) };
  },
});

/** Its payloads are hidden. The charges of one customer run in order, and a dead one holds up the next ones. */
export const chargeCard = defineJob("charge_card", {
  queue: "payments",
  payload: z.object({ customer: z.string(), cents: z.int() }),
  maxAttempts: 2,
  backoff,
  hidePayload: true,
  run: async ({ cents }, { signal }) => {
    await work(200, 700, signal);
    if (cents > 90_000) throw new FatalError("card declined: insufficient funds");
    return { charged: cents };
  },
});

export const collectSales = defineJob("collect_sales", {
  queue: "reports",
  payload: z.object({ region: z.string() }),
  run: async ({ region }, { signal }) => {
    await work(500, 2500, signal);
    if (region === "antarctica") throw new FatalError(`no shop is in the region ${region}`);
    return { region, orders: region.length * 137 };
  },
});

export const makeReport = defineJob("make_report", {
  queue: "reports",
  payload: z.object({ month: z.string() }),
  after: { sales: [collectSales] },
  run: async ({ month }, { blockers, step }) => {
    const orders = await step.run("add up", () =>
      blockers.sales.reduce(
        (sum, { status, output }) => sum + (status === "completed" ? output.orders : 0),
        0,
      ),
    );
    await step.sleep("let late orders arrive", 3);
    return step.run("write", () => ({ file: `report-${month}.pdf`, orders }));
  },
});

export const syncCustomer = defineJob("sync_customer", {
  queue: "crm",
  payload: z.object({ customer: z.string() }),
  run: (_, { signal }) => work(100, 300, signal),
});

export const cleanCarts = defineJob("clean_carts", {
  payload: z.object({ older_than_hours: z.int() }),
  run: (_, { signal }) => work(50, 200, signal),
});

/** A person completes it. */
export const approveRefund = definePulledJob("approve_refund", {
  payload: z.object({ order_id: z.int(), cents: z.int() }),
});

/** Between two times, in milliseconds. */
function work(fromMs: number, toMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, fromMs + Math.random() * (toMs - fromMs));
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
