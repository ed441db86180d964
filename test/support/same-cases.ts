// `npm test` draws the same random cases each time, so that no change is refused for what it did not cause. Other cases are
// drawn with SLUICE_SEED=random, and by `npm run test:long`.
import fc from "fast-check";

if (process.env.SLUICE_SEED !== "random") fc.configureGlobal({ seed: 20_261_118 });
