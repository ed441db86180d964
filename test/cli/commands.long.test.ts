// Every command over plain SQL.
import { describeEveryCommand } from "./every-command.ts";

describeEveryCommand("database");
