-- Who silenced an alarm, and why.
alter table alarm_silence add actor text, add reason text;
