-- Constraints that the engine's functions keep on the tables that jobs move through. Every test enforces them. A real
-- database does not have them: see docs/decisions/constraints.md.
alter table sluice.ready
  add check (attempt between 0 and 20),
  add check (abandonments between 0 and 20);
alter table sluice.scheduled
  add check (attempt between 0 and 20),
  add check (abandonments between 0 and 20);
alter table sluice.lease
  add check (cardinality(attempts) = cardinality(ids)),
  add check (cardinality(abandonments) = cardinality(ids));
alter table sluice.done
  add check (cardinality(attempts) = cardinality(ids)),
  add check (lo_id = ids[1] and hi_id = ids[cardinality(ids)]);
