-- A job is linked if `chain` is not null: others wait for it, or it continues a chain, or it belongs to a flow.
alter table job
  add chain uuid,      -- the id of the first job of its chain
  add chain_index int, -- null: the first
  add flow uuid,
  add waits boolean;   -- it has a row in `dependency`
