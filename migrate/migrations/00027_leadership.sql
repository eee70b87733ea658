-- +goose Up

-- A daemon of before this column names no version: the constraint's name is what its log shows.
alter table leaders add column if not exists schema_version bigint;
update leaders set schema_version = 26 where schema_version is null;
alter table leaders drop constraint if exists this_fairlease_is_older_than_the_schema_install_the_newer_one;
alter table leaders add constraint this_fairlease_is_older_than_the_schema_install_the_newer_one check (schema_version is not null);
alter table leaders add column if not exists turns bigint not null default 0;
comment on column leaders.schema_version is 'Version of the schema that the holder was made for; 26 = that or an older one. It commits to no other.';
comment on column leaders.turns is 'Turns of the holder that succeeded in this term, those too that found nothing to do: while it grows, leases are granted.';
comment on column leaders.why is 'How it ended: "resigned", "taken over", "crashed", "migrated" (the schema was brought to a newer version) or "skipped" (a number that was given before a dump was restored).';
