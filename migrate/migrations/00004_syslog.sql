-- +goose Up

create table syslog_sent (
    single boolean primary key default true,
    upto bigint not null,
    sent bigint[] not null default '{}',
    error text not null default '',
    constraint syslog_sent_single_check check (single)
);
comment on table syslog_sent is 'How much of the record of administration went to syslog, or need not (audit.syslog): one row.';
comment on column syslog_sent.single is 'Always true: there is one row.';
comment on column syslog_sent.upto is 'All rows of administration up to this number are done.';
comment on column syslog_sent.sent is 'Numbers of later rows that are done, too.';
comment on column syslog_sent.error is 'Why rows wait; empty = the last try succeeded.';
insert into syslog_sent (upto) select coalesce(max(id), 0) from administration;
