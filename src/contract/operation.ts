// What there is to say of one operation of the API.
import type * as z from "zod";

export interface Operation {
  method: "get" | "post" | "delete";
  /** With its parameters in braces. */
  path: string;
  summary: string;
  /** Who may, beside an admin. Null: everybody, without a key. */
  roles: readonly string[] | null;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** What comes back when all is well, by status. */
  answers: Record<number, z.ZodType>;
  /** If it is not JSON: a schema of text then. */
  answersAs?: string;
  /** The problems that are this operation's own; those of keys, bodies and the database are common to all. */
  problems?: readonly number[];
}
