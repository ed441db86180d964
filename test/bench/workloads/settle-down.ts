// After a large fill: what autovacuum would do in time. Without statistics some peers get plans that take seconds.
import { connect } from "../systems/connections.ts";

export async function settleDown(url: string): Promise<void> {
  const client = await connect(url);
  await client.query("vacuum analyze");
  await client.end();
}
