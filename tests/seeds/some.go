package seeds

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Some gives how many cases of a slow test are run: all of them if Full, else few.
func Some(few, all int) int {
	if Full() {
		return all
	}
	return few
}

// Few gives the first few cases of a slow table, all of them if Full.
func Few[T any](few int, all ...T) []T { return all[:Some(few, len(all))] }

// Slow skips a test that takes seconds and whose package has quicker tests beside it, unless Full or the flag -rapid.checks says how many
// draws to make.
func Slow(t testing.TB) {
	t.Helper()
	if !Full() && !drawn() {
		t.Skip("takes seconds: make test runs it (FAIRLEASE_FULL=1)")
	}
}

// drawn reports whether the flag -rapid.checks was given.
func drawn() (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	return given
}

// Main is the TestMain of a package whose properties take long: they are drawn 4 times instead of 100, unless Full or the
// flag -rapid.checks says otherwise. Tests, but not benchmarks, collect garbage less often: their worlds are small, and make
// much of it.
func Main(m *testing.M) {
	flag.Parse()
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(400)
	}
	if !Full() && !drawn() {
		if err := flag.Lookup("rapid.checks").Value.Set("4"); err != nil { // by flag.Set it would count as given
			panic(err) // rapid is linked in
		}
	}
	m.Run()
}
