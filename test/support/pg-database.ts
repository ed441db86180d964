export { createPgDatabase } from "../../src/test-kit/pg-database.ts";
