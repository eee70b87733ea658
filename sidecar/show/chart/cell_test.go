package chart

import "testing"

func TestCell(t *testing.T) {
	for text, want := range map[string]string{"": "", "nlp": "nlp", "-": "-", "a=1": "a=1", "=1+1": "'=1+1", "+x": "'+x", "-x": "'-x", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "é": "é",
		"'": "'", "'nlp'": "'nlp'", "'=": "'=", "'=1": "''=1", "''-x": "'''-x"} {
		if got := Cell(text); got != want || Text(got) != text {
			t.Errorf("%q: %q, want %q; and back %q", text, got, want, Text(got))
		}
	}
}
