-- Of a cancelled job: the job that has replaced it (debounce.sql).
alter table closed add superseded_by uuid;
