// Cursors of paged lists: opaque to the caller, and checked when they come back.
import type * as z from "zod";
import { SluiceError } from "../../../core/errors.ts";

export function encodeCursor(position: string): string {
  return btoa(position).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function decodeCursor<Schema extends z.ZodType>(cursor: string, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(decode(cursor));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "the cursor is not one of this list", {
    faults: [{ path: "cursor", message: "not a cursor of this list" }],
  });
}

function decode(cursor: string): string | undefined {
  try {
    return atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return undefined;
  }
}
