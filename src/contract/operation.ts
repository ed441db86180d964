// What the table of operations says about one operation of the API.
import type * as z from "zod";
import type { Role } from "../core/key.ts";

export interface Operation {
  method: "get" | "post" | "put" | "delete";
  /** Parameters are in braces: `/v1/jobs/{id}`. */
  path: string;
  summary: string;
  /** The roles that may call it. An admin may call everything. Null if no key is needed. */
  roles: readonly Role[] | null;
  query?: z.ZodObject;
  /** The request headers that it reads, each with its description. */
  headers?: Readonly<Record<string, string>>;
  body?: RequestBody;
  /** The schemas of its successful answers, by status. */
  answers: Readonly<Record<number, z.ZodType>>;
  /** The headers of those answers, each with its description. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** The media type of an answer that is not JSON. Its schema is a string. */
  answersAs?: string;
  /** The statuses of problems that only some operations have. Problems with keys, bodies and the database are added. */
  problems?: readonly number[];
}

export interface RequestBody {
  schema: z.ZodType;
  maxBytes: number;
  /** If true, a missing body counts as `{}`. */
  isOptional?: boolean;
}
