package daemon

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A long text in the log is truncated between two characters, and its length is added.
func TestBrief(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{strings.Repeat("a", mostText), strings.Repeat("a", mostText)},
		{strings.Repeat("a", mostText+1), strings.Repeat("a", mostText) + "… (501 bytes)"},
		{"a" + strings.Repeat("ü", mostText), "a" + strings.Repeat("ü", (mostText-1)/2) + "… (1001 bytes)"},
	} {
		if got := brief(c.text, mostText); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q, want %q", c.text, got, c.want)
		}
	}
}
