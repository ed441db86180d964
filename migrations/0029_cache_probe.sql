-- A number that a Worker raises and reads back when it starts: an old number means that something answers from a cache.
create sequence cache_probe;
-- Before a first number is taken, last_value is that number already.
select nextval('cache_probe');
