package slurm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ourWords are the prefixes of words that fairlease reads.
var ourWords = []string{"kind=", "steps=", "steps/s", "gpus=", "saves=", "save-time=", "mem.", "min-lease=", "signal=", "share="}

// hintWords gives the words that a job's user says of it, without other words, up to a limit, and counts the rest of
// them. They come from --fairlease, --comment and --wckey. If two of these have the same word, the first counts.
func hintWords(w *wireJob) (said string, unread int) {
	var ours []string
	length := 0
	for _, source := range [...]string{optionHints(w), w.comment, strings.TrimPrefix(w.wckey, "*")} { // * marks the user's default
		if !slices.ContainsFunc(ourWords, func(word string) bool { return strings.Contains(source, word) }) || othersJSON(source) {
			continue
		}
		before := len(ours)
		for word := range strings.FieldsFuncSeq(source, func(c rune) bool { return strings.ContainsRune(",; \t\n", c) }) {
			if !slices.ContainsFunc(ourWords, func(ours string) bool { return strings.HasPrefix(word, ours) }) || sameKey(ours[:before], word) {
				continue
			}
			if length += len(word) + 1; length > cluster.MaxComment {
				unread++
				continue
			}
			ours = append(ours, word)
		}
	}
	return strings.Join(ours, ","), unread
}

// optionHints gives the value of --fairlease or FAIRLEASE_HINTS. The submit plugin copies it to admin_comment. Without
// that plugin only --fairlease on the command line is visible, from v0.0.44 on.
func optionHints(w *wireJob) string {
	if hints := noted(w.mark, "fairlease:"); hints != "" {
		return hints
	}
	if !strings.Contains(w.submitLine, "--fairlease") {
		return ""
	}
	return options(w).hints
}

// othersJSON tells whether a text is a document of another tool: NVIDIA Mission Control writes one to --comment.
func othersJSON(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

// sameKey tells whether one of the words says the same thing, perhaps differently.
func sameKey(words []string, word string) bool {
	key, _, _ := strings.Cut(word, "=")
	return slices.ContainsFunc(words, func(other string) bool { return strings.HasPrefix(other, key+"=") })
}
