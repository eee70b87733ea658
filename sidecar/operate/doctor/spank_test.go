package doctor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// compile makes a shared library of some C.
func compile(t *testing.T, path, text string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The SPANK plugin is optional; if it is named, it must be there, be built for this Slurm, and not be required.
func TestSpank(t *testing.T) {
	dir := t.TempDir()
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("slurm.conf"), "")
	for name, version := range map[string]int{"new": 0x190b02, "old": 0x180b05} {
		compile(t, at(name), fmt.Sprintf("const unsigned int plugin_version = %d; const char plugin_type[] = \"spank\";", version))
	}
	compile(t, at("alien"), "int x = 1;")
	text := func(name string) []byte {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	compiled := map[string][]byte{"new": text("new"), "old": text("old"), "alien": text("alien"), "text": []byte("no library")}
	write(t, at("other.conf"), "optional spank_fairlease.so\n")
	write(t, at("here.conf"), "include here.conf\noptional x11.so\n") // endless
	for _, c := range []struct {
		name, conf, plugin string
		change             map[string]string
		want               string
	}{
		{"no plugstack.conf", "", "", nil, "SPANK plugin ok: not installed"},
		{"others only", "# optional spank_fairlease.so\nrequired pyxis.so\n\noptional\n", "", nil, "SPANK plugin ok: not installed"},
		{"as packaged", "optional spank_fairlease.so FAIRLEASE_PROGRESS_URL=http://slurm1:8765\n", "new", nil, "SPANK plugin ok: optional in DIR/plugstack.conf:1, built for Slurm 25.11"},
		{"by its path", "required x.so\nOptional DIR/plugins/spank_fairlease.so", "new", nil, "SPANK plugin ok: optional in DIR/plugstack.conf:2"},
		{"included", "include DIR/oth*.conf\n", "new", nil, "SPANK plugin ok: optional in DIR/other.conf:1"},
		{"in a circle", "include here.conf\noptional spank_fairlease.so\n", "new", nil, "SPANK plugin ok: optional in DIR/plugstack.conf:2"},
		{"another plugstack.conf", "", "new", map[string]string{slurm.ConfPlugStack: "DIR/other.conf"}, "SPANK plugin ok: optional in DIR/other.conf:1"},
		{"required", "required spank_fairlease.so\n", "new", nil, "SPANK plugin warn: DIR/plugstack.conf:1 names it as required"},
		{"missing", "optional spank_fairlease.so\n", "", nil, "SPANK plugin warn: DIR/plugstack.conf:1 names it, but DIR/plugins/spank_fairlease.so does not exist"},
		{"missing and required", "required spank_fairlease.so\n", "", nil, "SPANK plugin fail: DIR/plugstack.conf:1 names it, but"},
		{"of another release", "optional spank_fairlease.so\n", "old", nil, "SPANK plugin warn: DIR/plugins/spank_fairlease.so was built for Slurm 24.11.5, this is 25.11.2"},
		{"of another release, required", "required spank_fairlease.so\n", "old", nil, "SPANK plugin fail: DIR/plugins/spank_fairlease.so was built for Slurm 24.11"},
		{"no plugin", "optional spank_fairlease.so\n", "alien", nil, "SPANK plugin warn: DIR/plugins/spank_fairlease.so is no plugin"},
		{"no library", "optional spank_fairlease.so\n", "text", nil, "SPANK plugin warn: reading DIR/plugins/spank_fairlease.so: "},
		{"another host", "optional spank_fairlease.so\n", "new", map[string]string{slurm.ConfFile: "/absent/slurm.conf"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			conf := map[string]string{slurm.ConfFile: at("slurm.conf"), slurm.ConfPlugStack: "(null)", slurm.ConfPluginDir: "/absent:" + plugins}
			for key, value := range c.change {
				conf[key] = full(value)
			}
			for path, text := range map[string]string{at("plugstack.conf"): full(c.conf), filepath.Join(plugins, "spank_fairlease.so"): string(compiled[c.plugin])} {
				if _ = os.Remove(path); text != "" {
					write(t, path, text)
				}
			}
			seen := &doctor.Seen{Slurm: doctor.Slurm{Facts: slurm.Facts{Release: "25.11.2", Conf: conf}, Spank: doctor.ReadSpank(conf), Sighting: &cluster.Observation{}}}
			got := strings.Join(told(t, named(doctor.Check(config.Default(), seen), "SPANK")), "\n")
			if !strings.HasPrefix(got, full(c.want)) || c.want == "" && got != "" {
				t.Errorf("got %s%s", got, cmp.Diff(full(c.want), got))
			}
		})
	}
}
