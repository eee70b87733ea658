package chart

import "testing"

func TestCell(t *testing.T) {
	for text, want := range map[string]string{"": "", "nlp": "nlp", "-": "-", "a=1": "a=1", "=1+1": "'=1+1", "+x": "'+x", "-x": "'-x", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "é": "é"} {
		if got := Cell(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
