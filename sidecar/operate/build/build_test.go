package build

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

func TestOf(t *testing.T) {
	i := Of()
	if i.Schema != migrate.Latest() || !strings.HasPrefix(i.Go, "go") || i.Version == "" || (i.CLP != "") != lp.Available {
		t.Errorf("this build is %+v", i)
	}
	for _, c := range []struct {
		info Info
		want string
	}{
		{Info{Version: "0.1.0", Commit: "abc", Schema: 9, CLP: "1.17", Go: "go1", System: "linux/amd64"}, "fairlease 0.1.0 (commit abc, schema 9, CLP 1.17, go1 linux/amd64)"},
		{Info{Version: "0.1.0", Schema: 9, Go: "go1", System: "linux/amd64"}, "fairlease 0.1.0 (schema 9, no CLP, go1 linux/amd64)"},
	} {
		if got := c.info.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
