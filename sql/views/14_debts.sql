create or replace view debts as
select
    creditor.pool,
    creditor.tenant as creditor,
    debtor.tenant as debtor,
    round(creditor.owed_gpu_ms::numeric * -debtor.owed_gpu_ms / sum(-debtor.owed_gpu_ms) over (partition by creditor.pool, creditor.tenant), 3) as gpu_ms,
    gpu_hours(
        creditor.owed_gpu_ms::numeric * -debtor.owed_gpu_ms / sum(-debtor.owed_gpu_ms) over (partition by creditor.pool, creditor.tenant)
    ) as gpu_hours,
    (select max(at) from ledger) as as_of
from ledger as creditor
inner join ledger as debtor
    on creditor.pool = debtor.pool
    and debtor.owed_gpu_ms < 0
where creditor.owed_gpu_ms > 0
order by creditor.pool, gpu_ms desc, creditor, debtor;

comment on view debts is 'Debts between tenants: GPU time that the debtor had of the creditor''s due. A pool keeps one account for each tenant, so each claim is spread over the debtors in proportion to their debts.';
comment on column debts.pool is 'GPU model.';
comment on column debts.creditor is 'Tenant that is owed the GPU time.';
comment on column debts.debtor is 'Tenant that owes it.';
comment on column debts.gpu_ms is 'GPU time owed; spread in proportion, hence fractions.';
comment on column debts.gpu_hours is 'The same in hours, rounded to millionths.';
comment on column debts.as_of is 'Up to when all this is charged.';
