// The lease as a puller gets it: a token with the lease key, the type, the attempt, whether the job is a probe, and whether
// others may wait for it. The database compares the key, half of which is random, so an invented token settles nothing. A puller
// can change the other parts of its own token. That changes the backoff, which a puller may choose anyway, and whether the clock looks
// at the database once. It does not change a breaker: the database checks by itself whether a job is a probe, and a breaker
// opens only by the attempts in the books of its type.
import * as z from "zod";
import { SluiceError } from "../../../core/errors.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";

/** The last part is left out if it is false, so the token of a plain job is as it was before there were flows. */
const token = z.tuple([z.guid(), z.string().max(63), z.int().min(1).max(20), z.boolean()]).rest(z.boolean());

export interface Lease {
  key: string;
  type: string;
  attempt: number;
  isProbe: boolean;
  isLinked: boolean;
}

export function encodeLease({ key, type, attempt, isProbe, isLinked }: Lease): string {
  return encodeCursor(JSON.stringify([key, type, attempt, isProbe, ...(isLinked ? [true] : [])]));
}

export function decodeLease(lease: string): Lease {
  const parsed = token.safeParse(parseToken(lease));
  if (!parsed.success) {
    const faults = [{ path: "lease", message: "invalid lease" }];
    throw new SluiceError("request_invalid", "invalid lease", { faults });
  }
  const [key, type, attempt, isProbe, isLinked = false] = parsed.data;
  return { key, type, attempt, isProbe, isLinked };
}

function parseToken(lease: string): unknown {
  try {
    return JSON.parse(decodeCursor(lease, z.string()));
  } catch {
    return undefined;
  }
}

export function leaseLost(jobId: string): SluiceError {
  return new SluiceError("lease_lost", `the lease of job ${jobId} has expired, or the job was settled`);
}
