// The Worker of `sluice dev --demo`. src/local/demo.ts starts it and fills its queue.
import { hyperdrive } from "../hyperdrive.ts";
import { defineQueue, defineSchedule, sluice } from "../index.ts";
import { echo } from "../jobs/examples/echo.ts";
import {
  approveRefund,
  chargeCard,
  cleanCarts,
  collectSales,
  makeReport,
  resizeImage,
  sendReceipt,
  syncCustomer,
} from "./jobs.ts";

export { SluiceClock } from "../clock.ts";

export default sluice({
  jobs: [
    ...[sendReceipt, resizeImage, chargeCard, collectSales, makeReport, syncCustomer, cleanCarts],
    ...[approveRefund, echo],
  ],
  database: hyperdrive,
  queues: [defineQueue("payments"), defineQueue("crm", { shares: { concurrency: 4 } })],
  schedules: [
    defineSchedule("clean_carts", {
      cron: "*/5 * * * *",
      job: cleanCarts,
      payload: { older_than_hours: 48 },
    }),
    defineSchedule("monthly_report", {
      cron: "0 6 1 * *",
      timeZone: "Europe/Berlin",
      job: makeReport,
      payload: { month: "latest" },
    }),
    defineSchedule("newsletter", {
      cron: "30 9 * * 1-5",
      timeZone: "America/New_York",
      job: sendReceipt,
      payload: { order_id: 0, to: "everybody@shop.example" },
      overlap: "skip",
    }),
  ],
});
