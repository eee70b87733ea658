package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Every way out with every word.
func TestOptOut(t *testing.T) {
	for _, way := range []cluster.Way{cluster.WayNoRequeue, cluster.WayContiguous, cluster.WaySession, cluster.WayHet, cluster.WayOther, cluster.WayNoGPUs, cluster.WayExpedite} {
		for _, word := range []loop.OptOut{loop.Charge, loop.LeaveAlone, loop.Refuse, loop.Override, "never"} {
			c, err := config.Parse("f.yaml", fmt.Appendf(nil, "opt_out: {%s: %s}", way, word), nil)
			override := way == cluster.WayNoRequeue || way == cluster.WayContiguous || way == cluster.WayExpedite
			switch known := word != "never" && (word != loop.Override || override) && (word != loop.LeaveAlone || way != cluster.WayExpedite); {
			case known && err != nil:
				t.Errorf("%s: %s: %v", way, word, err)
			case known:
				rules := c.Rules()
				if got := rules.OptOut.Of(way); got != word {
					t.Errorf("%s: %s is %s", way, word, got)
				}
			case err == nil || !strings.Contains(err.Error(), "opt_out."+string(way)):
				t.Errorf("%s: %s is taken, or the error does not name the key: %v", way, word, err)
			case word == loop.Override && !strings.Contains(err.Error(), "override is for no_requeue, contiguous and expedite"):
				t.Errorf("%s: %s: %v", way, word, err)
			}
		}
	}
	for word, ok := range map[string]bool{"charge": true, "leave": true, "refuse": true, "override": false, "maybe": false} {
		c, err := config.Parse("f.yaml", []byte("opt_out: "+word), nil)
		if ok != (err == nil) {
			t.Errorf("opt_out: %s: %v", word, err)
		}
		if ok && c.OptOut != loop.AllOut(loop.OptOut(word)) {
			t.Errorf("opt_out: %s is %+v", word, c.OptOut)
		}
	}
}
