// sluice/clock: the Durable Object that starts delayed jobs and retries on time. It can be imported in Workers only.
export { SluiceClock, SluiceProducer } from "./edge/clock/sluice-clock.ts";
