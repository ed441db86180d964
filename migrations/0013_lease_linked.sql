-- Some of its jobs are linked.
alter table lease add linked boolean;
