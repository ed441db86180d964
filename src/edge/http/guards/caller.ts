// Who sent a request, as its key says.
import type { Role } from "../../../core/key.ts";

export interface Caller {
  name: string;
  role: Role;
  /** The types that it may enqueue, see and cancel; null: all. */
  types: readonly string[] | null;
  /** As the audit names it: of keys with one name each is its own. */
  actor: string;
}
