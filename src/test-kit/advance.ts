// Moves the clock of a queue by hand. The engine reads the database's clock, which nobody can move. So all times that it
// compares with that clock are moved to the past instead. Times of what has happened already stay as they are.

/** `$1` is the number of seconds. Jobs that become due get times from now on, in their order: cursors never look back. */
export function advanceStatements(schema: string): string[] {
  const move = (table: string, ...columns: string[]) =>
    `update ${schema}.${table} set ${columns.map((name) => `${name} = ${name} - make_interval(secs => $1)`).join(", ")}`;
  return [
    `update ${schema}.scheduled
     set run_at = moved.run_at
     from (select ctid,
                  greatest(run_at - make_interval(secs => $1),
                           clock_timestamp() + row_number() over (order by run_at) * interval '1 microsecond') as run_at
           from ${schema}.scheduled) as moved
     where scheduled.ctid = moved.ctid`,
    move("blocked", "run_at", "until"),
    // Of a sleep, and of a wait: when it is over.
    `update ${schema}.checkpoint
     set value = to_jsonb(value::float8 - $1 * 1000)
     where (name like 'sleep:%' or name like '%:until%') and jsonb_typeof(value) = 'number'`,
    move("lease", "deadline", "started_at"),
    move("job", "scheduled_at", "expires_at"),
    move("expiry", "expires_at"),
    move("idempotency", "expires_at"),
    move("debounce_state", "since", "until"),
    move("key_state", "next_at"),
    move("breaker", "opened_at", "probed_at", "closed_at"),
    `update ${schema}.limit_state
     set started_at = array(select at - make_interval(secs => $1) from unnest(started_at) with ordinality as t(at, place) order by place)`,
  ];
}
