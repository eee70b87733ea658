package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

func TestMain(m *testing.M) { seeds.Main(m) }

const (
	second = cluster.Second
	minute = cluster.Minute
	hour   = cluster.Hour
	term   = simtest.Term
)
