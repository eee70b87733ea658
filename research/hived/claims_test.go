package hived_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/research/hived"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// In twenty days of another seed no tenant waits longer with cells than alone, and dynamic binding preempts no more GPUs than static binding.
func TestClaims(t *testing.T) {
	seeds.Slow(t)
	h := trace.LikeHiveD(2)
	h.Length = 20 * cluster.Day
	claims, err := hived.Claims(h.Jobs())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		t.Logf("Figure %s, %s: %.2f (the paper: %s)", c.Figure, c.What, c.Here, c.Theirs)
		if (strings.HasSuffix(c.What, "cells") || c.Figure == "10") && c.Here > 1 {
			t.Errorf("Figure %s, %s: %.2f, want 1 at most", c.Figure, c.What, c.Here)
		}
	}
}
