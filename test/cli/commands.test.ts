// Every command over the Worker. commands.long.test.ts does the same over plain SQL.
import { describeEveryCommand } from "./every-command.ts";

describeEveryCommand("worker");
