-- When a job of the flow last moved, for the alarm flow_stalled (idle-flows.sql). The index has only flows that run.
alter table flow add changed_at timestamptz not null default now();
create index flow_running on flow (changed_at, id) where blocked + pending + processing > 0;
