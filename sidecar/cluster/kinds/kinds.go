// Package kinds tells by their command lines which jobs of a user do the same work, so that what one of them shows
// of a GPU model holds for the others.
package kinds

import (
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"
)

// Command is how a job was submitted.
type Command struct {
	// Script is the absolute path of the script, with its arguments; "" = unknown, or there is none.
	Script string
	// Line is the whole submit line: sbatch --gres=gpu:1 train.sh --lr 0.1. It is read without a script only.
	Line string
	// Dir is the working directory.
	Dir string
}

// The maximum numbers of bytes that are read of a command line, and of a label's readable part.
const (
	maxLine = 4096
	maxBase = 24
)

// Label returns a name for the work of a command, at most 33 bytes long: its program and a hash of its normal form. Commands with equal
// normal forms have equal labels. "" = the command is unknown.
//
// In the normal form every number, date, hash and run id is #. The values of options that say how much work there
// is (epochs, batch size, layers and the like) and digits that end a name, as in resnet50, stay.
func (c Command) Label() string {
	words := strings.Fields(cut(c.Script))
	if len(words) == 0 {
		words = program(strings.Fields(cut(c.Line)))
		if len(words) > 0 && words[0] != wrapped && !path.IsAbs(words[0]) {
			words[0] = path.Join(c.Dir, words[0])
		}
	}
	if len(words) == 0 {
		return ""
	}
	normal := normalise(words)
	base := path.Base(normal[0])
	if words[0] == wrapped {
		if len(words) == 1 {
			return ""
		}
		normal[0] = plain(c.Dir)
		base = path.Base(normal[1+max(slices.IndexFunc(words[1:], isScript), 0)])
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(normal, "\x00"))) // a hash never fails
	return fmt.Sprintf("%s:%08x", clean(base), h.Sum32())
}

// wrapped stands for the script of a job without one, whose command follows.
const wrapped = "--wrap"

// isScript reports whether a word is the name of a program in a script language.
func isScript(word string) bool {
	return slices.Contains([]string{".py", ".sh", ".jl", ".R", ".lua"}, path.Ext(word))
}

// flags are the options of sbatch, srun and salloc that take no value as a word of its own.
var flags = []string{
	"--contiguous", "--exclusive", "--get-user-env", "--hold", "-H", "--ignore-pbs", "--immediate", "-I", "--no-kill", "-k", "--no-requeue",
	"--overcommit", "-O", "--oversubscribe", "-s", "--parsable", "--propagate", "--quiet", "-Q", "--reboot", "--requeue", "--spread-job", "--stepmgr",
	"--test-only", "--use-min-nodes", "--verbose", "-v", "-vv", "-vvv", "--wait", "-W", "--pty", "--label", "-l", "--unbuffered", "-u", "--exact", "--overlap",
	"--wait-all-nodes", "--bell", "--no-bell", "--no-shell", "--nice", "--no-allocate", "-Z", "--preserve-env", "-E", "--multi-prog",
}

// program returns the words of a submit line from the program on; for --wrap, from that word on.
func program(line []string) []string {
	for i := 1; i < len(line); i++ {
		w := line[i]
		name, value, joined := strings.Cut(w, "=")
		switch {
		case name == wrapped && joined:
			return append([]string{wrapped, value}, line[i+1:]...)
		case w == wrapped:
			return slices.Clone(line[i:])
		case !strings.HasPrefix(w, "-") || w == "-":
			return slices.Clone(line[i:])
		case joined, slices.Contains(flags, w):
		case strings.HasPrefix(w, "--"), len(w) == 2:
			i++ // its value
		}
	}
	return nil
}

// amounts are words in the names of options whose values say how much work a job does, and what work.
var amounts = []string{
	"batch", "bs", "channels", "depth", "dim", "dims", "epoch", "epochs", "head", "heads", "hidden", "iter", "iterations", "iters", "layer",
	"layers", "length", "len", "max", "num", "resolution", "seq", "size", "step", "steps", "width", "precision", "bits",
}

// amount reports whether an option says how much work there is. Seeds and ids count things, too: num_seed, max_id.
func amount(option string) bool {
	parts := strings.FieldsFunc(strings.ToLower(option), func(c rune) bool { return c < 'a' || c > 'z' })
	return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(amounts, p) }) &&
		!slices.ContainsFunc(parts, func(p string) bool { return p == "seed" || p == "id" || p == "port" })
}

// normalise gives the normal form of each word.
func normalise(words []string) []string {
	var out []string
	keep := false // the word before is an option, and this its value
	for _, w := range words {
		name, value, joined := strings.Cut(w, "=")
		switch option := strings.HasPrefix(w, "-") && !number(strings.TrimPrefix(w, "-")); {
		case joined && amount(name):
			out, keep = append(out, plain(name), value), false
		case joined && option: // as in two words
			out, keep = append(out, plain(name), plain(value)), false
		case keep && !option:
			out, keep = append(out, w), false
		default:
			out, keep = append(out, plain(w)), option && amount(name)
		}
	}
	return out
}

// plain replaces what differs from run to run in a word by #.
func plain(word string) string {
	var out []byte
	for i := 0; i < len(word); {
		n := 0
		for i+n < len(word) && alnum(word[i+n]) {
			n++
		}
		run := word[i : i+n]
		switch {
		case n == 0:
			out = append(out, word[i])
			n = 1
		case number(run) || id(run):
			out = append(out, '#')
		default:
			letters := strings.TrimRight(run, "0123456789")
			if out = append(out, letters...); len(letters) < n && counted(letters) {
				out = append(out, '#')
			} else {
				out = append(out, run[len(letters):]...)
			}
		}
		i += n
	}
	return join(string(out))
}

// join makes one # of several with signs between them: 2026-11-26, 0.1 and 1e-4 are alike.
func join(text string) string {
	var out []byte
	for i := range len(text) {
		if text[i] == '#' {
			at := len(out)
			for at > 0 && strings.IndexByte("-_.:,+", out[at-1]) >= 0 {
				at--
			}
			if at > 0 && out[at-1] == '#' {
				out = out[:at]
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out)
}

// counted reports whether runs are told apart by a number after this word: seed7, run12, v3.
func counted(word string) bool {
	return slices.Contains([]string{"attempt", "ckpt", "checkpoint", "exp", "experiment", "fold", "id", "job", "log", "node", "out", "rank", "rep",
		"run", "seed", "sweep", "task", "trial", "try", "v", "version"}, strings.ToLower(word))
}

// number reports whether a word is a number without its signs: 12, 1e, 3E.
func number(word string) bool {
	digits := strings.TrimRight(word, "eE")
	return digits != "" && len(word)-len(digits) <= 1 && strings.Trim(digits, "0123456789.") == ""
}

// id reports whether letters and digits are mixed as in hashes, dates and random names: 3fa9c1, 20261126T1033, k8Xk29Qz.
func id(word string) bool {
	if strings.Trim(strings.ToLower(word), "0123456789abcdef") == "" && len(word) >= 4 && strings.ContainsAny(word, "0123456789") && strings.ContainsAny(word[:len(word)-1], "0123456789") {
		return true
	}
	changes := 0
	for i := 1; i < len(word); i++ {
		if digit(word[i]) != digit(word[i-1]) {
			changes++
		}
	}
	return len(word) >= 8 && changes >= 2
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func alnum(c byte) bool { return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// clean gives the readable part of a label.
func clean(base string) string {
	out := []byte(base[:min(len(base), maxBase)])
	for i, c := range out {
		if !alnum(c) && strings.IndexByte("._-#", c) < 0 {
			out[i] = '_'
		}
	}
	return string(out)
}

func cut(text string) string { return text[:min(len(text), maxLine)] }
