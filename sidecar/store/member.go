package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

var (
	dropMembers = sql.Query("drop_members")
	putMembers  = query[cluster.Member]("put_members")
)

// Enrol replaces the journal's list of the users of every tenant.
func (j *Journal) Enrol(ctx context.Context, members []cluster.Member) error {
	if members == nil {
		members = []cluster.Member{}
	}
	text, err := rowsText(members)
	if err == nil {
		err = j.lead.inTerm(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, dropMembers, text)
			if err == nil {
				_, err = tx.Exec(ctx, putMembers, text)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("writing down the users of tenants: %w", err)
	}
	return nil
}
