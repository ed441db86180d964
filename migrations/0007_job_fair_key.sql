alter table job add fair_key text;
