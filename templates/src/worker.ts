// The Worker: the HTTP API, the rounds that the crons start, and the clock.
import { sluice } from "sluice";
import { jobs } from "./jobs.ts";

export { SluiceClock, SluiceProducer } from "sluice/clock";

export default sluice({ jobs });
