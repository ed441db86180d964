// What there is to say of one operation of the API.
import type * as z from "zod";

export interface Operation {
  /** The name that generated clients call it by: the document's `operationId`. */
  id: string;
  method: "get" | "post" | "delete";
  /** With its parameters in braces. */
  path: string;
  summary: string;
  /** Who may, beside an admin. Null: everybody, without a key. */
  roles: readonly string[] | null;
  query?: z.ZodObject;
  /** Request headers that mean something here, with what they mean. */
  headers?: Readonly<Record<string, string>>;
  body?: z.ZodType;
  /** No body is the same as an empty one. */
  isBodyOptional?: boolean;
  /** What comes back when all is well, by status. */
  answers: Record<number, z.ZodType>;
  /** Headers of those answers, with what they mean. */
  answerHeaders?: Readonly<Record<string, string>>;
  /** If it is not JSON: a schema of text then. */
  answersAs?: string;
  /** The problems that are this operation's own; those of keys, bodies and the database are common to all. */
  problems?: readonly number[];
}
