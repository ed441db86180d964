-- Of a job that a schedule has made: { name, slot, missed }.
alter table job add schedule jsonb;
