create or replace view tuned_terms as
select
    id,
    at,
    kind,
    span(before_ms) as before,
    span(term_ms) as term,
    by,
    why,
    round
from tunings
order by id desc;

comment on view tuned_terms is 'The term of leases as it was chosen by the journal, newest first.';
comment on column tuned_terms.id is 'Number of the change.';
comment on column tuned_terms.at is 'When.';
comment on column tuned_terms.kind is 'kept, proposed, taken, undone or ended.';
comment on column tuned_terms.before is 'Term in force before.';
comment on column tuned_terms.term is 'Term in force after; of a proposal, the proposed term.';
comment on column tuned_terms.by is 'Author: fairlease, or a person.';
comment on column tuned_terms.why is 'Why, in words.';
comment on column tuned_terms.round is 'First round that named it; 0 = none has.';
