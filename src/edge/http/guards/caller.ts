// Who sent a request, according to its key.
import type { Role } from "../../../core/key.ts";

export interface Caller {
  name: string;
  role: Role;
  /** The types that the caller may enqueue, see and cancel. Null means all. */
  types: readonly string[] | null;
  /** The name in the audit log. It contains the id of the key, because two keys can have the same name. */
  actor: string;
}
