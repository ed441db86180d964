-- Jobs that wait for others. They do not count as pending.
alter table ledger add blocked int;
alter table tally add blocked bigint not null default 0;
