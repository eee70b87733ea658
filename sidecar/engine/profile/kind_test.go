package profile

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestTheKindOfAJob(t *testing.T) {
	rules := []Rule{{Tenant: "nlp", Name: "bert*", Kind: "bert"}, {User: "bob", Name: "*-ft-??", Kind: "finetune"}, {Name: "resnet50*", Kind: "resnet50"}}
	for _, x := range []struct {
		tenant, user, name, declared string
		want                         cluster.Kind
	}{
		{"nlp", "ann", "bert-large", "", "nlp/bert"},
		{"cv", "ann", "bert-large", "", "cv/ann.bert-large"},
		{"cv", "bob", "llama-ft-07", "", "cv/finetune"},
		{"cv", "bob", "llama-ft-7", "", "cv/bob.llama-ft-#"},
		{"cv", "ann", "resnet50-seed3", "", "cv/resnet50"},
		{"cv", "ann", "resnet50-seed3", "mine", "cv/mine"},
		{"cv", "ann", "train 17/of 20", "", "cv/ann.train_#_of_#"},
		{"cv", "ann", "", "a/b", "cv/a_b"},
		{"cv", "ann", "jöb", "", "cv/ann.j__b"},
		{"cv", "ann", strings.Repeat("x", 200), "", cluster.Kind("cv/ann." + strings.Repeat("x", 60))},
	} {
		got := KindOf(rules, x.tenant, x.user, x.name, x.declared, "")
		if got != x.want {
			t.Errorf("job %q of %s in %s: kind %s, want %s", x.name, x.user, x.tenant, got, x.want)
		}
		if got.Tenant() != x.tenant {
			t.Errorf("kind %s is of tenant %q, want %q", got, got.Tenant(), x.tenant)
		}
	}
}

func TestWorkIsAKindUnlessOneIsNamed(t *testing.T) {
	rules := []Rule{{Name: "bert*", Kind: "bert"}}
	for _, x := range []struct {
		user, name, declared string
		want                 cluster.Kind
	}{
		{"ann", "run7", "", "nlp/ann.train.py:01234567"},
		{"bob", "run7", "", "nlp/bob.train.py:01234567"},
		{"ann", "bert7", "", "nlp/bert"},
		{"ann", "bert7", "mine", "nlp/mine"},
	} {
		if got := KindOf(rules, "nlp", x.user, x.name, x.declared, "train.py:01234567"); got != x.want {
			t.Errorf("job %q of %s: kind %s, want %s", x.name, x.user, got, x.want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, x := range []struct {
		pattern, text string
		want          bool
	}{{"", "x", true}, {"*", "", true}, {"?", "", false}, {"a*b*c", "a--b--bc", true}, {"a*b*c", "a--b--bd", false},
		{"a", "ab", false}, {"ab", "a", false}, {"a**", "a", true}, {"*a?", "aaab", true}, {"[a]", "a", false}} {
		if got := fits(x.pattern, x.text); got != x.want {
			t.Errorf("%q fits %q: %v", x.pattern, x.text, got)
		}
	}
	if fits(strings.Repeat("a*", 500)+"b", strings.Repeat("a", 5000)) { // in no exponential time
		t.Error("a pattern that ends with b fits a text without")
	}
}

func FuzzKindOf(f *testing.F) {
	f.Add("nlp", "ann", "bert-17", "bert*", "", "train.py:01234567")
	f.Add("", "", "", "**?", "a/b", "")
	f.Fuzz(func(t *testing.T, tenant, user, name, pattern, declared, work string) {
		got := KindOf([]Rule{{Name: pattern, Kind: pattern}}, tenant, user, name, declared, work)
		if n := got.Name(); n == "" || len(n) > cluster.MaxName || n != cluster.CleanName(n) {
			t.Errorf("%q is no name of a kind", n)
		}
		if got.Tenant() != tenant {
			t.Errorf("kind %q is of tenant %q, want %q", got, got.Tenant(), tenant)
		}
	})
}
