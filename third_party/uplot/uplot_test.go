package uplot

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
)

// TestFilesAreUnchanged fails if somebody edits a file, or changes the version without its checksums.
func TestFilesAreUnchanged(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, f := range []struct{ name, text string }{{"LICENSE", License}, {"uPlot.iife.min.js", Script}, {"uPlot.min.css", Style}} {
		got += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(f.text)), f.name)
	}
	if got != string(sums) {
		t.Errorf("the files have the checksums\n%sbut SHA256SUMS has\n%s", got, sums)
	}
}
