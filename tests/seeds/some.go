package seeds

import (
	"flag"
	"testing"
)

// Some gives how many cases of a slow test are run: all of them if Full, else few.
func Some(few, all int) int {
	if Full() {
		return all
	}
	return few
}

// Main is the TestMain of a package whose properties take long: they are drawn 20 times instead of 100, unless Full or the
// flag -rapid.checks says otherwise.
func Main(m *testing.M) {
	flag.Parse()
	given := Full()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "20"); err != nil {
			panic(err) // rapid is linked in
		}
	}
	m.Run()
}
