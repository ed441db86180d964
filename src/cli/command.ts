// What a command is: the operation that it calls, its arguments and flags, and what it does.
import type { OperationId } from "../contract/operations.ts";
import type { Api } from "./api.ts";
import type { Output } from "./output/output.ts";

export interface Command {
  /** If left out, the summary of its operation. */
  summary?: string;
  /** The parameters of its path are arguments. The fields of its query and body are flags. */
  operation?: OperationId;
  /** Fields of the operation that are arguments, in order. One that ends with "?" may be left out. */
  arguments?: readonly string[];
  /** Fields of the operation that the command sets by itself. They are no flags. */
  sets?: Readonly<Record<string, Value>>;
  /** Flags of its own. */
  flags?: readonly Flag[];
  /** What a user has to know beside the summary. */
  details?: string;
  /** Without the leading "sluice". */
  examples: readonly string[];
  /** False for commands that reach neither the Worker nor the database by `Api`. */
  needsApi?: boolean;
  run(context: CommandContext): Promise<void>;
}

export interface Flag {
  /** Without the dashes. */
  name: string;
  kind: "boolean" | "number" | "text" | "list" | "json" | "ids";
  /** The field of the operation that it sets. */
  field?: string;
  choices?: readonly string[];
  help?: string;
}

export type Value = string | number | boolean | object | null | undefined;

export interface GlobalValues {
  url?: string;
  key?: string;
  /** "" stands for the one of the environment. */
  database?: string;
  json?: boolean;
  help?: boolean;
}

export interface CommandContext {
  api: Api;
  out: Output;
  /** The arguments, and the values of its own flags, by name. */
  values: Readonly<Record<string, Value>>;
  /** The fields of the operation that the user gave, for its query or body. */
  fields: Readonly<Record<string, Value>>;
  /** The flags of every command, for those that find their own way. */
  globals: GlobalValues;
  /** Aborted by SIGINT and SIGTERM, for commands that run until they are stopped. Read it once. */
  stopped: AbortSignal;
  env: NodeJS.ProcessEnv;
}
