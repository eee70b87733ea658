package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/spf13/cobra"
)

func replayCommand(p *program) *cobra.Command {
	var dir string
	c := &cobra.Command{Use: "replay ROUND|FILE [--save DIR]", Short: "decide a round again and compare the plans, byte for byte", Args: exactly("the number of a round, or a file"),
		Long: `Decide a round again from its recorded snapshot, and compare the plan with the recorded one, byte for
byte. The exit code is 1 if they differ. Another version of fairlease may decide differently. --save
writes snapshot and plans into a folder, as JSON.

FILE is a snapshot on which the engine failed. The daemon keeps it beside files.state, as
broken-ROUND.json.gz. replay decides it again and reports the result.`,
		RunE: func(c *cobra.Command, args []string) error {
			if strings.HasSuffix(args[0], ".gz") {
				said, err := operate.ReplayKept(args[0])
				p.printf("%s", said)
				return err
			}
			round, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || round <= 0 {
				return &failure.Error{Code: failure.Misuse, What: fmt.Sprintf("%q is not the number of a round", args[0]), Next: "fairlease status shows the newest"}
			}
			return p.withStore(c.Context(), func(_ *config.Config, s *store.Store) error {
				snap, plan, err := s.Rounds.Round(c.Context(), round)
				if errors.Is(err, store.ErrNone) {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d is not in the journal", round), Next: "choose another round: this one is older than database.keep_rounds, or nothing changed in it and it was not recorded"}
				}
				if err != nil {
					return err
				}
				again, err := operate.Replay(snap)
				if err != nil {
					return &failure.Error{Code: failure.No, What: fmt.Sprintf("round %d cannot be read", round), Err: err}
				}
				if dir != "" {
					if err := operate.SaveReplay(dir, round, map[string][]byte{"snapshot": snap, "plan": plan, "replayed": again}); err != nil {
						return &failure.Error{Code: failure.No, What: "the texts cannot be saved", Err: err}
					}
					p.printf("saved: %s\n", filepath.Join(dir, fmt.Sprintf("round-%d-*.json", round)))
				}
				if bytes.Equal(plan, again) {
					p.printf("round %d: the same plan, byte for byte (%d bytes from %d)\n", round, len(plan), len(snap))
					return nil
				}
				p.printf("round %d: the plan differs; first at %s\n", round, operate.Difference(plan, again))
				return failure.Quiet(failure.No)
			})
		}}
	c.Flags().StringVar(&dir, "save", "", "write the snapshot, the plan and the replayed plan into the folder `DIR`")
	return c
}
