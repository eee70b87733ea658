package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hints is what a job says of itself at submission (--fairlease, --comment or --wckey): kind=resnet50,steps=90000,steps/s.v100=12.5,gpus=idle. Its text is read once,
// where the job is seen; every field has a bound.
type Hints struct {
	Kind  string  `json:"kind,omitempty"`
	Idle  bool    `json:"idle,omitempty"`  // it takes idle GPUs only
	Share bool    `json:"share,omitempty"` // it may take turns with other jobs on its GPU; see Slice
	Steps float64 `json:"steps,omitempty"` // that it will do in all; 0 = it does not say
	Rates []Rate  `json:"rates,omitempty"` // at most MaxRates, one a model, in the order of the comment
	// Memory is the GPU memory that the job needs on each of its GPUs: at most MaxRates, one a model, in the order of the comment.
	Memory []GPUMemory `json:"memory,omitempty"`
	// MinLease is the minimum length that it wishes for its lease after each start; 0 = the site's. Settings.MinLeaseTerms bounds it.
	MinLease Span `json:"min_lease,omitempty"`
	// Signal is the signal of its notices without SIG, NoSignal for none, or "" = it does not say. SignalTo is "batch", or "" for
	// the site's choice.
	Signal   string   `json:"signal,omitempty"`
	SignalTo string   `json:"signal_to,omitempty"`
	Wrong    []string `json:"wrong,omitempty"` // mistakes in the comment, for its user: nine at most, each as short as CutWrong makes it
}

// Rate is a throughput that a job declares on a GPU model.
type Rate struct {
	Model string  `json:"model"`
	Rate  float64 `json:"rate"` // steps a second of the whole gang; 0 = it does not run there
}

// MaxMemory is more memory than a GPU has, in bytes.
const MaxMemory = 16 << 40

// maxMinLease is the longest minimum lease that a job may declare.
const maxMinLease = Day

// NoSignal is the word for notices without a signal.
const NoSignal = "none"

// NoticeSignals are the signals that a job can survive; KILL and STOP cannot be handled.
var NoticeSignals = []string{"USR1", "USR2", "TERM", "INT", "HUP", "QUIT", "CONT", "URG", "WINCH", "ALRM", "PROF", "VTALRM"}

// MaxComment is how many bytes of a comment's words are read.
const MaxComment = 512

// MaxRates is more models than a cluster has.
const MaxRates = 64

// maxWrong is more mistakes than a comment has that is not wrong all over.
const maxWrong = 8

// ParseHints reads the hints in a comment, between commas, semicolons or blanks; other words are the user's own. Of mistakes and
// repetitions it keeps the first maxWrong, and the rest of the comment holds. unread counts words that the caller left out
// because they stand beyond MaxComment. A comment without hints gives nil.
func ParseHints(text string, unread int) *Hints {
	if text == "" && unread == 0 {
		return nil
	}
	var h Hints
	var saves Saving // see Job.Declares: here only its mistakes count
	var wrong []string
	say := func(format string, args ...any) {
		if len(wrong) < maxWrong {
			wrong = append(wrong, CutWrong(fmt.Sprintf(format, args...)))
		}
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\t' || c == '\n' })
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		model, isRate := strings.CutPrefix(key, "steps/s.")
		memoryModel, isMemory := strings.CutPrefix(key, "mem.")
		switch {
		case !ok:
		case key == "kind" && h.Kind != "":
			say("%s: a kind stands there already; keep one", word)
		case key == "kind" && (value == "" || value != CleanName(value)):
			say("%s: a kind is up to %d letters, digits and ._-+#@:", word, MaxName)
		case key == "kind":
			h.Kind = value
		case key == "gpus" && value != "idle":
			say("%s: gpus=idle is all that can be said, for a job that takes idle GPUs only", word)
		case key == "gpus":
			h.Idle = true
		case key == "share" && value != "yes":
			say("%s: share=yes is all that can be said, for a job that may take turns with other jobs on its GPU", word)
		case key == "share":
			h.Share = true
		case key == "saves" || key == "save-time":
			if err := saves.Declare(key, value); err != nil {
				say("%v", err)
			}
		case key == "steps" && h.Steps != 0:
			say("%s: steps stand there already; keep one", word)
		case key == "steps":
			if n, err := number(value); err != nil || n == 0 {
				say("%s: write the number of steps that the job is to do, above 0", word)
			} else {
				h.Steps = n
			}
		case key == "steps/s":
			say("%s: on which GPU model? Write steps/s.MODEL=%s", word, value)
		case isMemory:
			if err := h.addMemory(memoryModel, value); err != nil {
				say("%s: %v", word, err)
			}
		case key == "min-lease" && h.MinLease != 0:
			say("%s: a minimum lease stands there already; keep one", word)
		case key == "min-lease":
			if least, err := ParseSpan(value); err != nil || least <= 0 || least > maxMinLease {
				say("%s: write how long the job wants to run at least before it is requeued, like 30m, at most a day", word)
			} else {
				h.MinLease = least
			}
		case key == "signal" && h.Signal != "":
			say("%s: a signal stands there already; keep one", word)
		case key == "signal":
			if err := h.setSignal(value); err != nil {
				say("%s: %v", word, err)
			}
		case isRate && (model == "" || model != CleanName(model)):
			say("%s: write a GPU model as Slurm names it, as in steps/s.v100=12.5", word)
		case isRate && h.has(model):
			say("%s: a rate on %s stands there already; keep one", word, model)
		case isRate && len(h.Rates) == MaxRates:
			say("%s: more than %d GPU models", word, MaxRates)
		case isRate:
			rate, err := number(value)
			if err == nil {
				err = CheckRate(rate)
			}
			if err == nil {
				err = h.credible(rate)
			}
			if err != nil {
				say("%s: %v", word, err)
			} else {
				h.Rates = append(h.Rates, Rate{model, rate})
			}
		}
	}
	if unread > 0 {
		wrong = append(wrong, fmt.Sprintf("%d words that stand beyond the first %d bytes", unread, MaxComment))
	}
	if h.Kind == "" && !h.Idle && !h.Share && h.Steps == 0 && h.Rates == nil && h.Memory == nil && h.MinLease == 0 && h.Signal == "" && wrong == nil {
		return nil
	}
	h.Wrong = wrong
	return &h
}

// CutWrong cuts what is told of a comment's mistakes to the length of an event.
func CutWrong(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "… and more"
}

// credible tells whether a rate can be beside the others.
func (h *Hints) credible(rate float64) error {
	for _, o := range h.Rates {
		if least, most := min(o.Rate, rate), max(o.Rate, rate); least > 0 && most > widest*least {
			return fmt.Errorf("%g steps a second cannot be beside %g on %s: no GPU model is more than %d times as fast as another", rate, o.Rate, o.Model, widest)
		}
	}
	return nil
}

func (h *Hints) has(model string) bool {
	for i := range h.Rates {
		if h.Rates[i].Model == model {
			return true
		}
	}
	return false
}

// addMemory reads mem.MODEL=SIZE.
func (h *Hints) addMemory(model, size string) error {
	switch {
	case model == "" || model != CleanName(model):
		return errors.New("write a GPU model as Slurm names it, as in mem.v100=30g")
	case slices.ContainsFunc(h.Memory, func(m GPUMemory) bool { return m.Model == model }):
		return fmt.Errorf("memory on %s stands there already; keep one", model)
	case len(h.Memory) == MaxRates:
		return fmt.Errorf("more than %d GPU models", MaxRates)
	}
	bytes, err := ParseMemory(size)
	if err == nil {
		h.Memory = append(h.Memory, GPUMemory{model, bytes})
	}
	return err
}

// ParseMemory reads an amount of memory in bytes: a number with a unit, m, g or t for MiB, GiB or TiB.
func ParseMemory(text string) (int64, error) {
	wrong := fmt.Errorf("%q is no GPU memory: write it with its unit, like 900m or 37.5g, from 1m to %dt", text, int64(MaxMemory)>>40)
	if text == "" {
		return 0, wrong
	}
	shift, ok := map[byte]int{'m': 20, 'g': 30, 't': 40}[text[len(text)-1]|0x20]
	amount := text[:len(text)-1]
	if !ok || amount == "" || strings.Trim(amount, "0123456789.") != "" { // else ParseFloat takes 1e3 and Inf
		return 0, wrong
	}
	n, err := strconv.ParseFloat(amount, 64)
	if n *= float64(int64(1) << shift); err != nil || n < 1<<20 || n > MaxMemory {
		return 0, wrong
	}
	return int64(n), nil
}

// setSignal reads [B:]SIGNAL, as in sbatch --signal, or none.
func (h *Hints) setSignal(text string) error {
	to, name, batch := strings.Cut(text, ":")
	if !batch {
		name = text
	}
	name = strings.ToUpper(name)
	if bare := strings.TrimPrefix(name, "SIG"); slices.Contains(NoticeSignals, bare) && (!batch || to == "B") {
		h.Signal = bare
		if batch {
			h.SignalTo = "batch"
		}
		return nil
	}
	if text == NoSignal {
		h.Signal = NoSignal
		return nil
	}
	return fmt.Errorf("write %s or one of %s, with B: before it for the batch script alone", NoSignal, strings.Join(NoticeSignals, ", "))
}

// number reads a count.
func number(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return n, CheckSteps(n)
}

// The bounds of a rate that is believed, in steps a second: a step in a thousand years, and a billion a second.
const (
	SlowestRate = 1e-10
	FastestRate = 1e9
	// widest is how many times as fast a job can be on one GPU model as on another.
	widest = 10_000
	// mostSteps is up to where a float64 counts every step.
	mostSteps = 1 << 53
)

// CheckSteps tells whether n can be a number of steps.
func CheckSteps(n float64) error {
	if !(n >= 0 && n <= mostSteps) { // NaN too
		return fmt.Errorf("%v cannot be: write a number from 0 to %d", n, int64(mostSteps))
	}
	return nil
}

// CheckRate tells whether a rate can be; in steps a second.
func CheckRate(rate float64) error {
	if rate != 0 && !(rate >= SlowestRate && rate <= FastestRate) {
		return fmt.Errorf("%v steps a second cannot be: write 0 where the job does not run, else a number from %g to %g", rate, SlowestRate, FastestRate)
	}
	return nil
}

// MaxName is the longest name of a kind.
const MaxName = 64

// CleanName gives a name that a kind may have.
func CleanName(name string) string {
	out := []byte(name[:min(len(name), MaxName)])
	for i, c := range out {
		if !letter(c) {
			out[i] = '_'
		}
	}
	return string(out)
}

// letter tells whether the name of a kind may have it.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-+#@:", c) >= 0
}
