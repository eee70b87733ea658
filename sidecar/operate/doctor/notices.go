package doctor

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/store"
)

// checkNotices tells of notices to users that were given up, or wait although they should not.
func checkNotices(f *findings, cfg *config.Config, c store.NoticeCounts) {
	if !cfg.Notices.On() {
		return
	}
	found := fmt.Sprintf("%d were given up within a week, and %d wait although they were tried or overdue", c.Dead, c.Waiting)
	if c.Error != "" {
		found += "; the newest error: " + c.Error
	}
	f.must(c.Dead+c.Waiting == 0, Warn, "outbox", found, "users are not told what happens to their jobs",
		"mend what the error names; what waits is sent then, and what was given up is not: select user_name, kind, error from notices where dead_at is not null")
}
