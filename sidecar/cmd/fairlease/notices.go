package main

import (
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/connect"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

const aboutNotices = `List your notices of the last 30 days, newest first, and which ones you get: by mail, or by the site's webhook.

  STATE   sent; waits: for its time, for quiet hours, or for another try; given up
  WHY     why the last try failed

The site says which kinds there are (notices.kinds):

%s
Beyond the site's rate, and in quiet hours, a digest counts the others. fairlease notices choose changes which
ones you get. Users read and write their own rows with a database user of the tenants' role; an administrator
names another user with --user.`

func noticesCommand(p *program) *cobra.Command {
	var l view.Form
	var of string
	var limit int
	kinds := ""
	for _, k := range notice.Kinds {
		kinds += fmt.Sprintf("  %-7s %s\n", k.Name, k.Words)
	}
	c := &cobra.Command{Use: "notices", Short: "list the notices to a user, and choose which ones it gets", Long: fmt.Sprintf(aboutNotices, kinds), Args: exactly(),
		Example: "  fairlease notices\n  fairlease notices choose --kinds stop,idle --quiet 22:00-07:00\n  fairlease notices choose --user alice --kinds none",
		RunE: func(c *cobra.Command, _ []string) error {
			name, err := userOr(of)
			if err != nil {
				return err
			}
			if limit < 1 {
				return failure.Usage("--limit: write a number above 0")
			}
			return p.withStore(c.Context(), func(cfg *config.Config, s *store.Store) error {
				choice, err := s.Notices.Choice(c.Context(), name)
				if err != nil {
					return err
				}
				list, err := s.Notices.List(c.Context(), name, limit)
				if err != nil {
					return err
				}
				if !l.JSON && !l.Parsable {
					p.printf("%s\n", view.NoticeWish(&choice, cfg.Notices.Kinds, cfg.Notices.Quiet))
				}
				page := p.page(l)
				return page.List(view.NoticeTable(page, list), struct {
					Choice  store.NoticeChoice `json:"choice"`
					Notices []store.Notice     `json:"notices"`
				}{choice, append([]store.Notice{}, list...)})
			}, "notices")
		}}
	c.Flags().StringVar(&of, "user", "", "notices to a `USER` (default: you)")
	c.Flags().IntVar(&limit, "limit", 50, "at most `N`, the newest")
	listFlags(c, &l)
	c.AddCommand(noticesChoose(p))
	return c
}

func noticesChoose(p *program) *cobra.Command {
	var of, kinds, quiet string
	c := &cobra.Command{Use: "choose [--kinds KINDS] [--quiet HOURS] [--user USER]", Short: "choose which notices you get, and your quiet hours", Args: exactly(),
		Long: `Choose which notices you get, within what the site sends, and your quiet hours. Without a flag, that choice stays as
it is. A new choice counts for what happens from now on.`,
		Example: "  fairlease notices choose --kinds stop,slip\n  fairlease notices choose --kinds all --quiet site",
		RunE: func(c *cobra.Command, _ []string) error {
			name, err := userOr(of)
			if err != nil {
				return err
			}
			return p.withStore(c.Context(), func(cfg *config.Config, s *store.Store) error {
				choice, err := s.Notices.Choice(c.Context(), name)
				if err != nil {
					return err
				}
				if err := chosen(&choice, kinds, quiet); err != nil {
					return err
				}
				if err := s.Notices.Choose(c.Context(), choice); err != nil {
					return &failure.Error{Code: failure.No, What: "the choice was not written down", Err: err, Next: connect.OrRole(err, "")}
				}
				p.printf("%s\n", view.NoticeWish(&choice, cfg.Notices.Kinds, cfg.Notices.Quiet))
				return nil
			}, "notices")
		}}
	c.Flags().StringVar(&kinds, "kinds", "", "`KINDS` with commas between them, all (that the site sends), or none")
	c.Flags().StringVar(&quiet, "quiet", "", "quiet `HOURS`: 22:00-07:00, site (as the site has them), or none")
	c.Flags().StringVar(&of, "user", "", "choose for a `USER` (default: you)")
	return c
}

// chosen changes a choice as the flags say; "" = as it was.
func chosen(c *store.NoticeChoice, kinds, quiet string) error {
	switch kinds {
	case "":
	case "all":
		c.Kinds = nil
	case "none":
		c.Kinds = []string{}
	default:
		c.Kinds = strings.Split(kinds, ",")
		for _, k := range c.Kinds {
			if !slices.Contains(notice.Names(), k) {
				return failure.Usage("--kinds: there is no kind %q; the kinds are %s, all and none", k, strings.Join(notice.Names(), ", "))
			}
		}
	}
	switch quiet {
	case "":
	case "site":
		c.Quiet = nil
	case "none":
		c.Quiet = new(string)
	default:
		if _, err := notice.ParseQuiet(quiet); err != nil {
			return failure.Usage("--quiet: %v", err)
		}
		c.Quiet = &quiet
	}
	return nil
}

// userOr gives a name, or the user that runs the command.
func userOr(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	me, err := user.Current()
	if err != nil {
		return "", &failure.Error{Code: failure.No, What: "your name is not known", Err: err, Next: "add --user NAME"}
	}
	return me.Username, nil
}
