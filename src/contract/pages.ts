// Parts that several shapes of the admin API share.
import * as z from "zod";

export const page = {
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional(),
};
export const plainText = z.string().regex(/^\P{Cc}+$/u, "must not be empty or contain control characters");
