package chart

import "strings"

// Cell gives a text as a cell of a CSV that people open in a spreadsheet. A text that would begin a formula there, as a user may have chosen the
// name of an account, gets an apostrophe before it.
func Cell(text string) string {
	if len(text) > 1 && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
