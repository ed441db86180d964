-- The keys and places of the jobs that hold turns, one for each id; null: these jobs hold none.
alter table lease add keys bigint[], add places bigint[];
