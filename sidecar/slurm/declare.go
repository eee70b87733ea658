package slurm

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// maxCommand is the maximum length of a command line that is kept, in bytes.
const maxCommand = 96

// maxSubmitLine is the maximum length of a submit line that is read, in bytes.
const maxSubmitLine = 4096

// commandLine gives the command line that identifies jobs of a type: the script's path and
// arguments, or the argument of --wrap, with every number as #. The end of a long one is replaced
// by a hash of the whole.
func commandLine(w *wireJob) string {
	text := strings.TrimSpace(w.command)
	if text == "" {
		line := strings.Fields(cutText(w.submitLine, maxSubmitLine))
		at := slices.IndexFunc(line, func(s string) bool { return s == "--wrap" || strings.HasPrefix(s, "--wrap=") })
		if at < 0 {
			return ""
		}
		rest := append([]string{strings.TrimPrefix(strings.TrimPrefix(line[at], "--wrap"), "=")}, line[at+1:]...)
		text = "--wrap " + strings.TrimSpace(strings.Join(rest, " "))
	}
	text = numberless(text)
	if len(text) <= maxCommand {
		return text
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return fmt.Sprintf("%s~%08x", cutText(text, maxCommand-9), h.Sum32())
}

// cutText truncates a text to most bytes, between two letters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// numberless replaces every number in a text by #, and unprintable characters by ?.
func numberless(text string) string {
	var out strings.Builder
	digits := false
	for _, c := range strings.ToValidUTF8(text, "?") {
		switch {
		case c >= '0' && c <= '9':
			if !digits {
				out.WriteByte('#')
			}
			digits = true
			continue
		case c < ' ' || c == 0x7f:
			c = '?'
		}
		digits = false
		out.WriteRune(c)
	}
	return out.String()
}

// declared gives how a job saves, as its user declares it. An explicit word (saves=) has
// precedence. Next are the word signal= and the option --signal: a job that asks for a signal
// handles it. Last is --requeue, if the user wrote it. It does not prove that the job saves, only that
// its user expects requeues. It counts as saving on SIGTERM, and as implied, so
// that observations override it. --open-mode=append counts as nothing: it is about the output alone, and a job
// that never saves would lose all its work at the end of a term for it. The options are read from the submit line, which API v0.0.44
// and later reports; options inside the script are not visible.
func declared(w *wireJob, said string, hints *cluster.Hints) cluster.Saving {
	var s cluster.Saving
	for word := range strings.SplitSeq(said, ",") {
		key, value, _ := strings.Cut(word, "=")
		if s.Declare(key, value) == nil && key == "saves" {
			s.Evidence = "saves=" + value
		}
	}
	o := options(w)
	signal, named := parseSignal(o.signal)
	if named {
		s.Signal, s.SignalTo = signal.Signal, signal.SignalTo
	}
	if hints != nil && hints.Signal != "" {
		s.Signal, s.SignalTo = hints.Signal, hints.SignalTo
	}
	switch {
	case s.Manner != cluster.UnknownManner:
		if s.Manner == cluster.SavesOnNotice && s.Takes == 0 {
			s.Takes = signal.Takes
		}
	case named:
		s.Manner, s.Evidence = cluster.SavesOnNotice, "--signal="+o.signal
		if s.Takes == 0 {
			s.Takes = signal.Takes
		}
	case s.Signal != "" && s.Signal != cluster.NoSignal:
		s.Manner, s.Evidence = cluster.SavesOnNotice, "signal="+s.Signal
	case o.requeue:
		s.Manner, s.Evidence, s.Implied = cluster.SavesOnTerm, "--requeue", true
	default:
		return s // only the duration of a save and the signal, if any
	}
	s.Source, s.At = cluster.FromDeclaration, instant(w.submit)
	return s
}

// sbatchOptions are the options on the command line of sbatch.
type sbatchOptions struct {
	signal, hints string
	requeue       bool
	shared        []string // by --exclusive: "none", "user", "mcs" or "topo"
}

// options reads the options in a job's submit line, up to its script or --wrap; the rest are the
// job's own arguments.
func options(w *wireJob) (o sbatchOptions) {
	if w.submitLine == "" || !w.batch {
		return o
	}
	line := strings.Fields(cutText(w.submitLine, maxSubmitLine))
	script, _, _ := strings.Cut(strings.TrimSpace(w.command), " ")
	for i := 1; i < len(line); i++ {
		name, value, joined := strings.Cut(line[i], "=")
		with := cmp.Or(value, "none")
		if !joined && i+1 < len(line) {
			value = line[i+1]
		}
		switch {
		case name == "--wrap" || script != "" && path.Base(line[i]) == path.Base(script) && !strings.HasPrefix(line[i], "-") && !valueOf(line[i-1]):
			return o
		case name == "--signal":
			o.signal = value
		case name == "--fairlease":
			o.hints = value
		case name == "--exclusive":
			o.shared = []string{with}
		case name == "--requeue":
			o.requeue = true
		case name == "--no-requeue":
			o.requeue = false
		}
	}
	return o
}

// valueOf tells whether a word is an option whose value may be the next word and look like the
// script: sbatch -J train.sh train.sh.
func valueOf(option string) bool {
	return slices.Contains([]string{"-J", "--job-name", "-o", "--output", "-e", "--error", "-D", "--chdir"}, option)
}

// signals are those that a job can handle, by Slurm's number.
var signals = map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 10: "USR1", 12: "USR2", 14: "ALRM", 15: "TERM", 18: "CONT"}

// parseSignal reads the value of --signal, [{R|B}:]SIGNAL[@SECONDS]: the signal that the job
// handles, the processes that receive it, and the time that the job asks for.
func parseSignal(text string) (s cluster.Saving, ok bool) {
	const standard = 60 * cluster.Second
	s.SignalTo, s.Takes = "steps", standard
	flags, rest, flagged := strings.Cut(text, ":")
	if !flagged {
		flags, rest = "", text
	}
	if strings.ContainsAny(flags, "Bb") {
		s.SignalTo = "batch"
	}
	name, seconds, timed := strings.Cut(rest, "@")
	if timed {
		n, ok := cluster.ParseCount(seconds, 65535) // Slurm's maximum
		if !ok {
			return cluster.Saving{}, false
		}
		s.Takes = cluster.Span(n) * cluster.Second
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if n, err := strconv.Atoi(name); err == nil {
		name = signals[n]
	}
	for _, known := range signals {
		if name == known {
			s.Signal = name
			return s, true
		}
	}
	return cluster.Saving{}, false
}
