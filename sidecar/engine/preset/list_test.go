package preset_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

var rewrite = flag.Bool("rewrite", false, "write the lists of presets anew")

// The configuration's comments and the man page list the registry, all of it and in its order.
func TestListsOfPresets(t *testing.T) {
	for _, list := range []struct {
		file, begin, end string
		row              func(preset.Preset) string
	}{
		{"../../../etc/fairlease.yaml", "# The preset says how GPUs are divided:\n", "preset: ", comment},
		{"../../../docs/fairlease.1", "of the configuration says how GPUs are divided:\n", ".SH ", roff},
	} {
		text, err := os.ReadFile(list.file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(text), list.begin)
		at := strings.Index("\n"+rest, "\n"+list.end)
		if !ok || at < 0 {
			t.Fatalf("%s has no list between %q and %q", list.file, list.begin, list.end)
		}
		want := ""
		for _, p := range preset.All() {
			want += list.row(p)
		}
		if is := before + list.begin + want + rest[at:]; is != string(text) {
			if !*rewrite {
				t.Fatalf("%s lists other presets than the registry: write the list anew with -rewrite", list.file)
			}
			if err := os.WriteFile(list.file, []byte(is), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The man page lists the presets that the simulator takes for heterogeneous GPUs.
func TestListOfDividingPresets(t *testing.T) {
	const file, begin, end = "../../../docs/fairlease.1", "it takes the given throughputs as declared: one of\n", ".\nCost policies"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no list between %q and %q", file, begin, end)
	}
	list := strings.ReplaceAll(strings.Join(preset.Dividing(), ",\n"), "-", `\-`)
	if is := before + begin + list + end + after; is != string(text) {
		if !*rewrite {
			t.Fatalf("%s lists other presets than the registry: write the list anew with -rewrite", file)
		}
		if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// comment gives a row as a comment of the configuration.
func comment(p preset.Preset) string {
	const width, indent = 100, 28
	line, out := fmt.Sprintf("#   %-*s", indent-5, p.Name), ""
	for word := range strings.FieldsSeq(p.Doc) {
		if len(line)+1+len(word) > width {
			out += line + "\n"
			line = "#" + strings.Repeat(" ", indent-2)
		}
		line += " " + word
	}
	return out + line + "\n"
}

// roff gives a row as a paragraph of the man page.
func roff(p preset.Preset) string {
	escape := strings.NewReplacer("-", `\-`, "'", `\(aq`).Replace
	return ".TP\n.B " + escape(p.Name) + "\n" + escape(p.Doc) + "\n"
}

// Every preset that the documentation names is in the registry.
func TestDocsNamePresets(t *testing.T) {
	named := regexp.MustCompile("`((?:gavel|oef|gandiva-fair|drf|astraea|hived)[:a-z-]*)`")
	for _, file := range []string{"README.md", "docs/heterogeneous-gpus.md", "docs/SEMANTICS.md"} {
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no preset", file)
		}
		for _, m := range found {
			if _, ok := preset.Of(m[1]); !ok && m[1] != "gavel" && m[1] != "oef" {
				t.Errorf("%s: %s is no preset", file, m[1])
			}
		}
	}
}
