package profile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Words is what a job's --comment= says of it: kind=resnet50,steps=90000,steps/s.v100=12.5,gpus=idle,saves=30m,save-time=90s
type Words struct {
	Kind  string
	Idle  bool      // it takes idle GPUs only
	Steps float64   // that it is to do; 0 = it does not say
	Rates []Declare // by model, as they stand there
	Saves cluster.Saving
}

// Declare is a rate that a job declares on a model.
type Declare struct {
	Model string
	Rate  float64 // steps a second of the whole gang; 0 = it does not run there
}

// mostRates is more models than a cluster has.
const mostRates = 64

// mostWrong is more than is wrong in a comment that is not wrong all over.
const mostWrong = 8

// ParseComment reads what a comment says to us, between commas, semicolons or blanks; other
// words are the user's own. What is said wrongly or twice is told, the first mostWrong of it, and the
// rest holds.
func ParseComment(text string) (Words, error) {
	var w Words
	var wrong []error
	say := func(format string, args ...any) {
		if len(wrong) < mostWrong {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\t' || c == '\n' })
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		model, isRate := strings.CutPrefix(key, "steps/s.")
		switch {
		case !ok:
		case key == "kind" && w.Kind != "":
			say("%s: a kind stands there already; keep one", word)
		case key == "kind" && (value == "" || value != clean(value)):
			say("%s: a kind is up to %d letters, digits and ._-+#@:", word, mostLetters)
		case key == "kind":
			w.Kind = value
		case key == "gpus" && value != "idle":
			say("%s: gpus=idle is all that can be said, for a job that takes idle GPUs only", word)
		case key == "gpus":
			w.Idle = true
		case key == "saves" || key == "save-time":
			if err := w.Saves.Declare(key, value); err != nil {
				say("%w", err)
			}
		case key == "steps" && w.Steps != 0:
			say("%s: steps stand there already; keep one", word)
		case key == "steps":
			if n, err := number(value); err != nil || n == 0 {
				say("%s: write the number of steps that the job is to do, above 0", word)
			} else {
				w.Steps = n
			}
		case key == "steps/s":
			say("%s: on which GPU model? Write steps/s.MODEL=%s", word, value)
		case isRate && (model == "" || model != clean(model)):
			say("%s: write a GPU model as Slurm names it, as in steps/s.v100=12.5", word)
		case isRate && w.has(model):
			say("%s: a rate on %s stands there already; keep one", word, model)
		case isRate && len(w.Rates) == mostRates:
			say("%s: more than %d GPU models", word, mostRates)
		case isRate:
			rate, err := number(value)
			if err == nil {
				err = usable(rate)
			}
			if err == nil {
				err = w.credible(rate)
			}
			if err != nil {
				say("%s: %w", word, err)
			} else {
				w.Rates = append(w.Rates, Declare{model, rate})
			}
		}
	}
	return w, errors.Join(wrong...)
}

// IdleOnly tells whether a comment says that its job takes idle GPUs only.
func IdleOnly(comment string) bool {
	if !strings.Contains(comment, "gpus=idle") { // as most do not
		return false
	}
	w, _ := ParseComment(comment)
	return w.Idle
}

// credible tells whether a rate can be beside the others.
func (w *Words) credible(rate float64) error {
	for _, o := range w.Rates {
		if least, most := min(o.Rate, rate), max(o.Rate, rate); least > 0 && most > widest*least {
			return fmt.Errorf("%g steps a second cannot be beside %g on %s: no GPU model is more than %d times as fast as another", rate, o.Rate, o.Model, widest)
		}
	}
	return nil
}

func (w *Words) has(model string) bool {
	for i := range w.Rates {
		if w.Rates[i].Model == model {
			return true
		}
	}
	return false
}

// number reads a count.
func number(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return n, countable(n)
}
