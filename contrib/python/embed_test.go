package python

import (
	"os"
	"strings"
	"testing"
)

// The example that users read is the one that is tested.
func TestDocumentedExample(t *testing.T) {
	example, err := os.ReadFile("tests/example.py")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(example)+"```\n") {
		t.Error("docs/jobs.md has another example than tests/example.py")
	}
}
