package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
)

// A file that leaves out what the daemon acts by is a fault, and so is an empty one; the same file again is none.
func TestCutConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	load := func(text string) *config.Config {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	const whole = "partitions: [gpu]\nmode: act\nexclude: {users: [root]}\n"
	was := load(whole).Accept()
	for text, want := range map[string]string{whole: "", "partitions: [gpu]\nmode: act\n": "exclude.users: is not set any more", "partitions: [gpu]\nexclude: {users: [root]}\n": "mode: is not set any more"} {
		found := named(doctor.Check(load(text), &doctor.Seen{Accepted: &was}), "accepted")
		said := strings.Join(told(t, found), "\n")
		if len(found) != map[bool]int{true: 0, false: 1}[want == ""] || !strings.Contains(said, want) {
			t.Errorf("%q: %s", text, said)
		}
	}
	waiting := was
	waiting.Waiting = &config.Waiting{Digest: config.Digest(load("mode: act\npartitions: [gpu]\nexclude: {users: [root, ann]}\n")), Says: "the next round would end the leases of 3 jobs"}
	for text, want := range map[string]int{whole: 0, "mode: act\npartitions: [gpu]\nexclude: {users: [root, ann]}\n": 1} {
		if found := named(doctor.Check(load(text), &doctor.Seen{Accepted: &waiting}), "waiting"); len(found) != want || want > 0 && !strings.Contains(found[0].Do, "fairlease config accept "+waiting.Waiting.Digest[:12]) {
			t.Errorf("%q: %+v", text, found)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := doctor.Examine(t.Context(), path, nil, nil); len(found) != 1 || !strings.Contains(found[0].Found, "sets nothing") {
		t.Errorf("an empty file: %+v", found)
	}
}
