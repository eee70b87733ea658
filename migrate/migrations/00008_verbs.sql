-- +goose Up

comment on column actions.verb is 'Kind of change; docs/operations.md lists all verbs.';
