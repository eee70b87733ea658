// Package words checks the plain English of comments and documents, and how long the README is.
package words

import (
	"strings"
	"unicode"
)

// Count gives the number of words of a Markdown text outside its code blocks: runs of characters between spaces, with a letter or a digit.
func Count(text string) int {
	n, code := 0, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if !code && strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
	}
	return n
}
