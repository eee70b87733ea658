package main

import (
	"strings"
	"testing"
)

func TestGrown(t *testing.T) {
	steady := func(at int) sample {
		return sample{Memory: 80 + float64(at%5), Descriptors: 20, Goroutines: 40, Journal: 30 + 0.1*float64(at), Jobs: 10 * at, Rounds: 33 * at}
	}
	for _, c := range []struct {
		name string
		n    int
		at   func(int) sample
		want string // "" = nothing grows
	}{
		{"steady", 64, steady, ""},
		{"buffers fill in the first quarter", 64, func(at int) sample { s := steady(at); s.Memory += 20 * float64(min(at, 15)); return s }, ""},
		{"memory", 64, func(at int) sample { s := steady(at); s.Memory += 2 * float64(at); return s }, "memory grow"},
		{"descriptors", 64, func(at int) sample { s := steady(at); s.Descriptors += float64(at) / 2; return s }, "descriptors grow"},
		{"goroutines", 64, func(at int) sample { s := steady(at); s.Goroutines += float64(at); return s }, "goroutines grow"},
		{"a journal by its jobs", 64, func(at int) sample { s := steady(at); s.Jobs = at; return s }, "journal grows: by 4.7 MiB for 47 jobs"},
		{"a journal by its rounds", 64, func(at int) sample { s := steady(at); s.Rounds = 5 * at; return s }, "journal grows: by 4.7 MiB for 470 jobs and 235 rounds"},
		{"a journal whose rounds grow", 64, func(at int) sample { s := steady(at); s.Journal += 0.005 * float64(at*at); return s }, "journal grows"},
		{"a journal's first pages", 64, func(at int) sample { s := steady(at); s.Journal += float64(min(at, 18)) / 2; return s }, ""},
		{"too short", 5, steady, "too few"},
	} {
		var samples []sample
		for at := range c.n {
			samples = append(samples, c.at(at))
		}
		got := strings.Join(grown(samples), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, ";") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Of a week, five days are busy and two are not, and each has a night.
func TestTide(t *testing.T) {
	for part, want := range map[float64]float64{0.1 / 7: 8, 0.6 / 7: 0.7, 4.6 / 7: 0.7, 5.1 / 7: 24, 6.9 / 7: 2.1} {
		if got := tide(part); got < want*0.99 || got > want*1.01 {
			t.Errorf("at %.2f days users wait %.1f times as long, want %.1f", 7*part, got, want)
		}
	}
}
