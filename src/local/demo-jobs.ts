// What the demo enqueues. The types are those of src/demo/jobs.ts.

export interface NewJob {
  type: string;
  payload: object;
  partition_key?: string;
  fair_key?: string;
  tags?: string[];
  priority?: number;
  delay_seconds?: number;
  max_attempts?: number;
}

const customers = ["ada", "bela", "chidi", "dana", "emre"];
const tenants = ["north", "south", "west"];
let orderId = 48_200;

/** In this order, by path and body. */
export function demoRequests(): [string, object][] {
  return [
    ["/v1/admin/job-types/sync_customer/pause", {}],
    ["/v1/jobs/batch", { jobs: [...badJobs(), ...laterJobs(), ...syncs()] }],
    ["/v1/flows", { jobs: report("2026-10", ["europe", "asia", "africa"]) }],
    ["/v1/flows", { jobs: report("2026-11", ["europe", "antarctica"]) }],
    ["/v1/flows", { jobs: refund() }],
    ...Array.from({ length: 3 }, (): [string, object] => [
      "/v1/jobs/batch",
      { jobs: Array.from({ length: 10 }, nextJobs).flat() },
    ]),
  ];
}

/** A handful of orders: a charge, a receipt and a picture each, and now and then one that fails. */
export function nextJobs(): NewJob[] {
  const customer = pick(customers.slice(1));
  return [
    receipt(`${customer}@${isRare(12) ? "slow" : "post"}.example`),
    charge(customer, 500 + Math.floor(Math.random() * 9_000)),
    ...(isRare(2) ? [image(`photo-${orderId}.jpg`, isRare(15) ? 9_000 : 1_600)] : []),
  ];
}

/** Those that end as dead letters, of five kinds of error. */
function badJobs(): NewJob[] {
  return [
    ...["typo", "gone", "test", "moved", "old"].map((name) => receipt(`${name}@nowhere.example`)),
    ...["ida", "jon", "kim"].map((name) => receipt(`${name}@slow.example`)),
    ...["IMG_0412.heic", "IMG_0413.heic", "IMG_0977.heic", "IMG_1204.heic"].map((file) => image(file, 800)),
    ...[9_600, 12_000].map((width) => image("poster.png", width)),
    charge("ada", 129_900),
    // They wait for the one that is dead.
    charge("ada", 1_990),
    charge("ada", 4_250),
  ];
}

function laterJobs(): NewJob[] {
  return [
    { ...receipt("ada@post.example"), delay_seconds: 3_600, tags: ["reminder"] },
    { ...receipt("emre@post.example"), delay_seconds: 86_400, tags: ["reminder"] },
    ...[4_990, 12_500].map((cents) => ({
      type: "approve_refund",
      payload: { order_id: orderId++, cents },
      priority: 6,
    })),
  ];
}

/** Of a type that is paused. */
function syncs(): NewJob[] {
  return tenants.flatMap((tenant, index) =>
    customers.slice(0, 5 - 2 * index).map((customer) => ({
      type: "sync_customer",
      payload: { customer },
      fair_key: tenant,
    })),
  );
}

function report(month: string, regions: readonly string[]): object[] {
  return [
    ...regions.map((region) => ({ ref: region, type: "collect_sales", payload: { region } })),
    { ref: "report", type: "make_report", payload: { month }, after: { sales: regions } },
    { ref: "mail", ...receipt("ada@post.example"), after: ["report"] },
  ];
}

/** It waits for a person. */
function refund(): object[] {
  return [
    { ref: "approval", type: "approve_refund", payload: { order_id: orderId++, cents: 7_900 } },
    { ref: "refund", ...charge("bela", -7_900), after: ["approval"] },
    { ref: "mail", ...receipt("bela@post.example"), after: ["refund"] },
  ];
}

function receipt(to: string): NewJob {
  return { type: "send_receipt", payload: { order_id: orderId++, to }, tags: ["checkout"] };
}

function image(file: string, width: number): NewJob {
  return { type: "resize_image", payload: { file, width } };
}

function charge(customer: string, cents: number): NewJob {
  return { type: "charge_card", payload: { customer, cents }, partition_key: customer };
}

function pick<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}

/** Once in so many times. */
function isRare(times: number): boolean {
  return Math.random() * times < 1;
}
