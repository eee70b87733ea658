package chart

import "strings"

// Cell gives a text as a cell of a CSV that people open in a spreadsheet. A text that would begin a formula there, as a user may have chosen the
// name of an account, gets an apostrophe before it, also after apostrophes of its own: so Text can take it off again.
func Cell(text string) string {
	if formula(text) {
		return "'" + text
	}
	return text
}

// Text gives the text of a cell that Cell made.
func Text(cell string) string {
	if text, ok := strings.CutPrefix(cell, "'"); ok && formula(text) {
		return text
	}
	return cell
}

// formula tells whether a text begins a formula, apostrophes before it aside.
func formula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return len(text) > 1 && strings.ContainsRune("=+-@\t\r", rune(text[0]))
}
