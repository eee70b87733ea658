package config

import (
	"net/url"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Telemetry says how fairlease sees what runs outside Slurm's view.
type Telemetry struct {
	GPU GPUCounters `yaml:"gpu"`
}

// GPUCounters says where the counters of GPUs are read.
type GPUCounters struct {
	Exporters    string       `yaml:"exporters"`  // URL of a node's exporter, with {node}, {host} or {address}
	Prometheus   string       `yaml:"prometheus"` // URL of a server that asks them
	Match        string       `yaml:"match"`      // of series of the latter
	Every        Duration     `yaml:"every"`
	MaxAge       Duration     `yaml:"max_age"`
	User         string       `yaml:"user"`
	PasswordFile string       `yaml:"password_file"`
	TokenFile    string       `yaml:"token_file"`
	TLS          TLS          `yaml:"tls"`
	Counters     []GPUCounter `yaml:"counters"`
}

// GPUCounter is another name of a counter.
type GPUCounter struct {
	Meaning string `yaml:"meaning" json:"meaning"`
	Name    string `yaml:"name" json:"name"`
	Unit    string `yaml:"unit" json:"unit"`
}

// On tells whether counters are read.
func (g *GPUCounters) On() bool { return g.Exporters != "" || g.Prometheus != "" }

// Same tells whether two sections describe the same source.
func (g *GPUCounters) Same(o *GPUCounters) bool { return reflect.DeepEqual(g, o) }

// Idle says what follows when a job holds GPUs that do nothing.
type Idle struct {
	TellAfter    Duration `yaml:"tell_after"`
	ReclaimAfter Duration `yaml:"reclaim_after"`
}

func (k *checker) telemetry() {
	g, idle := &k.c.Telemetry.GPU, &k.c.Idle
	const gpus = "telemetry.gpu."
	k.must(g.Exporters == "" || g.Prometheus == "", gpus+"prometheus", "conflicts with %s: set only one", k.where(gpus+"exporters", g.Exporters))
	k.must((g.TLS.CertFile == "") == (g.TLS.KeyFile == ""), gpus+"tls.cert_file", "telemetry.gpu.tls.cert_file and telemetry.gpu.tls.key_file go together; set both or neither")
	k.must((g.User == "") == (g.PasswordFile == ""), gpus+"password_file", "telemetry.gpu.user and telemetry.gpu.password_file go together; set both or neither")
	k.must(g.User == "" || g.TokenFile == "", gpus+"token_file", "conflicts with %s: set only one way to authenticate", k.where(gpus+"user", g.User))
	for key, path := range map[string]string{"password_file": g.PasswordFile, "token_file": g.TokenFile, "tls.ca_file": g.TLS.CAFile, "tls.cert_file": g.TLS.CertFile, "tls.key_file": g.TLS.KeyFile} {
		k.must(path == "" || filepath.IsAbs(path), gpus+key, "must be an absolute path, got %q", path)
	}
	k.must(g.Every >= Duration(10*cluster.Second), gpus+"every", "%v is too short; write at least 10s: exporters read their GPUs every 30 s", g.Every)
	k.must(g.MaxAge >= 3*g.Every, gpus+"max_age", "%v is shorter than three times %s: GPUs would count as stale between two looks; lengthen it", g.MaxAge, k.where(gpus+"every", g.Every))
	k.must(g.Match == "" || g.Prometheus != "", gpus+"match", "selects series of a Prometheus server; set telemetry.gpu.prometheus, or remove it")
	k.must(!strings.ContainsAny(g.Match, "{}"), gpus+"match", "%q has braces; write the matchers alone, as in cluster=\"a\",job=\"dcgm\"", g.Match)
	if err := g.unknown(); err != nil {
		k.must(false, gpus+"counters", "%v", err)
	} else if g.On() {
		key, address := gpus+"exporters", g.Exporters
		alone := GPUCounters{Exporters: g.Exporters, Counters: g.Counters}
		if g.Prometheus != "" {
			key, address = gpus+"prometheus", g.Prometheus
			alone = GPUCounters{Prometheus: g.Prometheus, Counters: g.Counters}
		}
		err := alone.opens()
		k.must(err == nil, key, "%v", err)
		u, bad := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(address))
		secret := g.PasswordFile != "" || g.TokenFile != ""
		k.must(err != nil || bad != nil || !secret || u.Scheme == "https" || loopback(u.Hostname()), key, "the password or token would cross the network in clear; use https")
	}
	k.must(idle.TellAfter == 0 || idle.TellAfter >= 3*g.Every, "idle.tell_after", "%v is shorter than three looks at the GPUs (%s); lengthen it, or write 0s for never", idle.TellAfter, k.where(gpus+"every", g.Every))
	k.must(idle.ReclaimAfter == 0 || idle.ReclaimAfter >= 5*Duration(cluster.Minute), "idle.reclaim_after", "%v is too short: jobs idle while they load and save; write at least 5m, or 0s for never", idle.ReclaimAfter)
	k.must(idle.ReclaimAfter == 0 || g.On(), "idle.reclaim_after", "needs the counters of GPUs; set telemetry.gpu.exporters or telemetry.gpu.prometheus")
}
