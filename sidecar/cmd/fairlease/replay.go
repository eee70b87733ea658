package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/failure"
	"github.com/fairlease/fairlease/sidecar/replay"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/spf13/cobra"
)

func (p *program) replay() *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "replay ROUND|FILE [--save DIR]", Short: "decide a round again and compare, byte for byte", Args: exactly("the number of a round, or a file"),
		Long: `Take what the engine knew in a round, decide again, and compare the plan with the one that was
written down, byte for byte. The exit code is 1 if they differ. Another version of fairlease may
decide otherwise. With --save the texts are left in a folder, as JSON.

A FILE is a snapshot over which the engine broke down: the daemon keeps it beside files.state, as
broken-ROUND.json.gz. It is decided again, and it is told how that ends.`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.HasSuffix(args[0], ".gz") {
				said, err := replay.Kept(args[0])
				p.printf("%s", said)
				return err
			}
			round, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || round <= 0 {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is no round's number", args[0]), Next: "fairlease status tells the newest"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				snap, plan, err := s.Round(c.Context(), round)
				if errors.Is(err, store.ErrNone) {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d is not in the journal", round), Next: "it never was, or it is older than database.keep_rounds; rounds in which nothing changed are not written down"}
				}
				if err != nil {
					return err
				}
				again, err := replay.Decide(snap)
				if err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d cannot be read", round), Err: err}
				}
				if dir != "" {
					if err := replay.Save(dir, round, map[string][]byte{"snapshot": snap, "plan": plan, "replayed": again}); err != nil {
						return &failure.Error{Code: failure.No, What: "the texts cannot be saved", Err: err}
					}
					p.printf("saved: %s\n", filepath.Join(dir, fmt.Sprintf("round-%d-*.json", round)))
				}
				if bytes.Equal(plan, again) {
					p.printf("round %d: the same plan, byte for byte (%d bytes from %d)\n", round, len(plan), len(snap))
					return nil
				}
				p.printf("round %d: the plan differs; first at %s\n", round, replay.Difference(plan, again))
				return failure.Quiet(failure.No)
			})
		}}
	c.Flags().StringVar(&dir, "save", "", "leave snapshot, plan and the replayed plan in the folder `DIR`")
	return c
}
