package words

import (
	"os"
	"testing"
)

// mostReadme is the number of words that a stranger reads in a few minutes.
const mostReadme = 900

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := Count(string(text)); n == 0 || n > mostReadme {
		t.Errorf("README.md has %d words outside code blocks, want at most %d: move what not every reader needs into docs", n, mostReadme)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "# A head\n\nTwo words, and 4 more.\n": 7, "| a | b |\n|---|---|\n": 2, "one\n```\nnot this\n```\ntwo ```three```\n": 3, "1. `x y`\n   ```\n   z\n   ```\n": 3,
	} {
		if n := Count(text); n != want {
			t.Errorf("%q has %d words, want %d", text, n, want)
		}
	}
}
