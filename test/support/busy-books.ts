// Fills the books as a busy day does: a row in `tally` for each minute and lane, and entries in `ledger` that are not
// folded yet. The sums stay as they are.
import type pg from "pg";

type Client = pg.ClientBase | pg.Pool;

export async function fillBooks(client: Client): Promise<void> {
  await client.query(
    `insert into sluice.tally
     select date_trunc('minute', now()) - n * interval '1 minute', lane, 60, 0, 0, 0, 60, 1, 0, 0, 0, 0
     from sluice.lane, generate_series(1, 25 * 60) as n`,
  );
  await client.query(
    `insert into sluice.round (kind, queue, started_at, ended_at, claim_ms, reason)
     select (array['drain', 'nudge', 'reap', 'watch'])[1 + n % 4], 'default', at, at, 3, 'empty'
     from generate_series(20000, 1, -1) as n, lateral (select now() - n * interval '30 s' as at) as ended`,
  );
}

export async function fillLedger(client: Client, { rows }: { rows: number }): Promise<void> {
  await client.query(
    `insert into sluice.ledger (at, lane, pending, leased)
     select now() - n * interval '1 ms', lanes[1 + n % cardinality(lanes)], -1 + n / cardinality(lanes) % 2 * 2, 0
     from (select array_agg(lane) as lanes from sluice.lane) as lane_list, generate_series(0, $1::int - 1) as n`,
    [rows],
  );
}
