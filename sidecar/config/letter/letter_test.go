package letter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/notice"
	"github.com/fairlease/fairlease/sidecar/config/letter"
)

// A letter has one subject and its own words, whatever texts of users are in it: they are no templates, and end no line.
func TestHostileTexts(t *testing.T) {
	letters, err := letter.Read("", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab {{}}.$\r\n\t\x00\u2028\u202e\u200b\u0085")), rapid.Rune())).Draw(t, "text")
		kind := rapid.SampledFrom(append(notice.Names(), notice.Digest)).Draw(t, "kind")
		c := cluster.Case{Job: cluster.Job{ID: cluster.JobID{ID: 7}, Name: text, User: "u" + text, State: cluster.Running, Request: cluster.Request{Size: cluster.Whole(4)}},
			Record: cluster.Record{Key: 1, Tenant: text, State: cluster.Waiting}}
		n := notice.Of(&cluster.Snapshot{Cases: []cluster.Case{c}}, &cluster.Plan{})[0]
		n.Facts.Text = notice.Clean(text)
		subject, body, err := letters.Write(kind, text, n.Facts)
		if err != nil {
			t.Fatalf("%s of %q: %v", kind, text, err)
		}
		if strings.ContainsFunc(subject, func(r rune) bool { return !unicode.IsGraphic(r) }) || strings.ContainsFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }) {
			t.Fatalf("the letter has odd signs: %q, %q", subject, body)
		}
		plain, _, _ := letters.Write(kind, "u", notice.Facts{ID: n.Facts.ID, Name: "n", Tenant: "t", GPUs: cluster.CountOf(4), At: n.Facts.At, Text: "x"})
		if kind != notice.Budget && subject != plain {
			t.Fatalf("%q changes the subject: %q, else %q", text, subject, plain)
		}
	})
	_, body, err := letters.Write(notice.Start, "ann", notice.Facts{ID: "7", Name: notice.Clean("{{.User}}\nFrom: x"), GPUs: cluster.CountOf(1)})
	if err != nil || !strings.Contains(body, "({{.User}} From: x)") {
		t.Errorf("a job's name is carried out: %q (%v)", body, err)
	}
}

func TestLettersInPlainWords(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	letters, err := letter.Read("", zone)
	if err != nil {
		t.Fatal(err)
	}
	at := cluster.InstantOf(time.Date(2026, 3, 2, 13, 5, 0, 0, time.UTC))
	f := notice.Facts{ID: "4711", Name: "train", Tenant: "nlp", GPUs: cluster.CountOf(1), At: at, Was: at, Text: "has held 1 idle GPU for 30 min", Counts: map[string]int{"stop": 3, "start": 20}}
	for kind, want := range map[string][2]string{
		notice.Stop:   {"Job 4711 will be stopped at Mon 2 Mar 14:05 CET", "Your job 4711 (train) on 1 GPU will be stopped at Mon 2 Mar 14:05 CET."},
		notice.Start:  {"Job 4711 has started", "Your job 4711 (train) has started on 1 GPU, at Mon 2 Mar 14:05 CET."},
		notice.Idle:   {"Job 4711 holds idle GPUs", "Your job 4711 (train) has held 1 idle GPU for 30 min."},
		notice.Budget: {"The budget of nlp", "You have jobs of nlp."},
		notice.Slip:   {"Job 4711 is expected to start later", "is expected to start about Mon 2 Mar 14:05 CET.\nEarlier forecasts said Mon 2 Mar 14:05 CET at the latest."},
		notice.Digest: {"More news of your jobs", "\n  20 x start\n  3 x stop\n"},
	} {
		subject, body, err := letters.Write(kind, "ann", f)
		if err != nil || subject != want[0] || !strings.Contains(body, want[1]) {
			t.Errorf("%s: %q, %q (%v)", kind, subject, body, err)
		}
	}
}

// Parts of GPUs are numbers, and templates compare whole GPUs with whole numbers.
func TestLettersCountGPUs(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "stop.txt"), []byte("{{.GPUs}}\n\n{{count .GPUs \"GPU\"}}{{if eq .GPUs 1}}, one{{end}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	letters, err := letter.Read(folder, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[cluster.GPUCount]string{cluster.CountOf(1): "1: 1 GPU, one", cluster.CountOf(8): "8: 8 GPUs", 500_000: "0.5: 0.5 GPUs", 333_333: "0.333333: 0.333333 GPUs"} {
		subject, body, err := letters.Write(notice.Stop, "ann", notice.Facts{GPUs: n})
		if got := subject + ": " + strings.TrimSpace(body); err != nil || got != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
}

// A site's templates are tried when they are read.
func TestTemplatesOfASite(t *testing.T) {
	for name, c := range map[string]struct{ file, text, wrong string }{
		"good":          {"stop.txt", "GPU notice: {{.ID}}\n\nHello {{.User}}, job {{.ID}} of {{.Tenant}} ends at {{time .At}}.\n", ""},
		"syntax":        {"stop.txt", "x\n\n{{if}}", "stop.txt"},
		"no field":      {"start.txt", "x\n\n{{.Secret}}", "can't evaluate field Secret"},
		"no subject":    {"start.txt", "\n\ntext", "its subject"},
		"no empty line": {"start.txt", "one\ntwo\n", "its subject"},
		"two lines":     {"start.txt", "one\ntwo\n\nthree\n", "its subject"},
		"no text":       {"start.txt", "one\n\n \n", "its subject"},
		"too long":      {"start.txt", "one\n\n{{printf \"%20000s\" .ID}}", "is longer than"},
		"unknown kind":  {"stopp.txt", "x\n\ny", "no such kind"},
		"unless filled": {"digest.txt", "x\n\n{{index .Counts \"stop\" | printf \"%d\"}} {{slice .ID 0 2}}", "digest.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			letters, err := letter.Read(dir, time.UTC)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Fatalf("%v, want %q", err, c.wrong)
			}
			if err != nil {
				return
			}
			subject, body, err := letters.Write(notice.Stop, "ann", notice.Facts{ID: "7", Tenant: "nlp"})
			if err != nil || subject != "GPU notice: 7" || !strings.HasPrefix(body, "Hello ann, job 7 of nlp") {
				t.Errorf("%q, %q, %v", subject, body, err)
			}
			if subject, _, err := letters.Write(notice.Start, "ann", notice.Facts{ID: "7"}); subject != "Job 7 has started" || err != nil {
				t.Errorf("a kind without a template of the site: %q (%v)", subject, err)
			}
		})
	}
	if _, err := letter.Read(filepath.Join(t.TempDir(), "none"), time.UTC); err == nil {
		t.Error("a folder that is not there is taken")
	}
}
