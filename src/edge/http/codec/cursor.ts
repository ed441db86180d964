// Cursors of paged lists. They are opaque to callers and checked when they come back.
import type * as z from "zod";
import { SluiceError } from "../../../core/errors.ts";

export function encodeCursor(position: string): string {
  return btoa(position).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function decodeCursor<Schema extends z.ZodType>(cursor: string, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(decodeBase64Url(cursor));
  if (parsed.success) return parsed.data;
  throw new SluiceError("request_invalid", "invalid cursor", {
    faults: [{ path: "cursor", message: "invalid cursor" }],
  });
}

function decodeBase64Url(cursor: string): string | undefined {
  try {
    return atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return undefined;
  }
}
