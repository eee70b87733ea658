package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestHintsOfAJob(t *testing.T) {
	t.Parallel()
	long := "kind=" + strings.Repeat("x", 300)
	for _, x := range []struct {
		name string
		w    wireJob
		want string
	}{
		{"nothing", wireJob{}, ""},
		{"other words", wireJob{comment: "mine, checkpoint", wckey: "project7"}, ""},
		{"parts of words", wireJob{comment: "mind the steps"}, ""},
		{"separators", wireJob{comment: "checkpoint kind=resnet50;steps/s.v100=12.5\nsteps=9,mankind=3"}, "kind=resnet50,steps/s.v100=12.5,steps=9"},
		{"invalid words, for their parser", wireJob{comment: "steps/s=3, kind=,mem.=,signal="}, "steps/s=3,kind=,mem.=,signal="},
		{"long words", wireJob{comment: long + "," + long}, long},
		{"JSON of another tool", wireJob{comment: `{"APS": "kind=a, gpus=idle", "x":[1]}`}, ""},
		{"not quite JSON", wireJob{comment: `{night} kind=a`}, "kind=a"},
		{"JSON, and a wckey", wireJob{comment: ` {"APS":{}, "b":"kind=a"} `, wckey: "kind=b"}, "kind=b"},
		{"a default wckey", wireJob{wckey: "*kind=b"}, "kind=b"},
		{"a word from each", wireJob{mark: "fairlease:kind=a", comment: "kind=b,steps=1", wckey: "kind=c,steps=2,mem.v100=1g"}, "kind=a,steps=1,mem.v100=1g"},
		{"a word twice in one", wireJob{comment: "kind=b,kind=c"}, "kind=b,kind=c"},
		{"a mark besides", wireJob{mark: "a note;fl:begin=0,gate=9 fairlease:kind=a,signal=TERM"}, "kind=a,signal=TERM"},
		{"an administrator's note", wireJob{mark: "kind=a,unfairlease:kind=b"}, ""},
		{"a submit line", wireJob{batch: true, submitLine: "sbatch --fairlease=kind=a,gpus=idle --comment=x a.sh --fairlease=kind=b", command: "/home/a/a.sh"}, "kind=a,gpus=idle"},
		{"a submit line of several words", wireJob{batch: true, submitLine: "sbatch --fairlease kind=a --wrap x"}, "kind=a"},
		{"the submit plugin before the submit line", wireJob{mark: "fairlease:kind=b", batch: true, submitLine: "sbatch --fairlease=kind=a a.sh"}, "kind=b"},
		{"an interactive job", wireJob{submitLine: "salloc --fairlease=kind=a"}, ""},
	} {
		if said, unread := hintWords(&x.w); said != x.want || (unread == 1) != (x.name == "long words") {
			t.Errorf("%s: %q, %d unread; want %q", x.name, said, unread, x.want)
		}
	}
}

// FuzzHintWords reads arbitrary texts from all sources.
func FuzzHintWords(f *testing.F) {
	f.Add("fl:begin=0 fairlease:kind=a", "kind=b", "*mem.v100=3g", "sbatch --fairlease=kind=c x.sh")
	f.Add("", `{"a":"kind=b"}`, "", "sbatch --fairlease")
	f.Fuzz(func(t *testing.T, mark, comment, wckey, line string) {
		w := wireJob{mark: mark, comment: comment, wckey: wckey, submitLine: line, batch: true}
		said, unread := hintWords(&w)
		if len(said) > cluster.MaxComment || unread < 0 {
			t.Errorf("%d bytes, %d unread", len(said), unread)
		}
		for word := range strings.SplitSeq(said, ",") {
			if said != "" && !slices.ContainsFunc(ourWords, func(ours string) bool { return strings.HasPrefix(word, ours) }) {
				t.Errorf("%q is among %q", word, said)
			}
		}
	})
}
