package install_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/operate/doctor"
	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// options is a Slurm in which doctor finds nothing.
func options(suite string) testcluster.Options {
	return testcluster.Options{
		Suite: suite, Plugin: testcluster.PluginC, KillWait: 30,
		PluginConf: strings.Replace(testcluster.PluginConf, "protect_gate=no", "gate_license=fairlease\nprotect_gate=yes", 1),
		Nodes:      []testcluster.NodeGroup{{Prefix: "v", Count: 2, Model: "v100", GPUs: 4, Shards: -1}, {Prefix: "k", Count: 2, Model: "k80", GPUs: 4, Shards: -1}},
		Partitions: []testcluster.Partition{{Name: "gpu", Default: true, Extra: "MaxTime=7-0 MaxCPUsPerNode=15"}},
		ExtraConf:  "Licenses=fairlease:1000000\nJobFileAppend=1\nPriorityFlags=ACCRUE_ALWAYS\n",
	}
}

// mistake is one that an administrator makes on the way to observe.
type mistake struct {
	name string
	// make commits it, undo takes it back: shell lines. yaml is a sed expression on fairlease.yaml, conf one on slurm.conf, in place
	// of both.
	make, undo, yaml, conf string
	asRoot                 bool     // doctor runs as root, not as fairlease
	finds                  string   // "area check level" of each finding that the mistake adds, separated by commas
	says                   []string // parts of the findings' texts: the place of the mistake, and the next step
	newer                  bool     // Slurm 24.11 does not show it in its answers
}

const (
	yaml = "/etc/fairlease/fairlease.yaml"
	// spare makes another database of PostgreSQL's, which the configuration names instead.
	spare = "runuser -u postgres -- createdb --owner %s spare; sed -i 's|///fairlease?|///spare?|' " + yaml
	// tokened is a sed expression that names a token.
	tokened = `/^slurm:/,/^database:/ { s|^  user: ""|  user: fairlease|; s|^  token_file: ""|  token_file: /etc/fairlease/token| }`
	// urgent are lines of slurm.conf by which Slurm preempts jobs for those of a partition with a higher tier.
	urgent = `PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=7-0 MaxCPUsPerNode=15`
	// unspare drops it.
	unspare = "sed -i 's|///spare?|///fairlease?|' " + yaml + "; runuser -u postgres -- dropdb --force spare"
)

var mistakes = []mistake{
	// The configuration.
	{name: "a key is misspelt", yaml: "s/^partitions:/partitons:/", finds: "configuration file fail", says: []string{"fairlease.yaml:", "did you mean partitions?"}},
	{name: "a partition is misspelt", yaml: "s/^partitions: .*/partitions: [gpus]/", finds: "slurm partition gpus fail, slurm plugin partitions warn",
		says: []string{"Slurm has no such partition", "correct partitions in the configuration; those with GPUs are gpu"}},
	{name: "a tenant is misspelt", yaml: "/^tenants:/,/^preset:/ s/^  weights: {}/  weights: {nlp: 3, visoin: 1}/", finds: "slurm tenants.weights warn", says: []string{"no account visoin", "sacctmgr show account"}},
	{name: "the example of cells is taken as it is", yaml: "s/^preset: astraea/preset: hived/; s|^  file: \"\"|  file: /usr/share/doc/fairlease/examples/cells/small-lab.yaml|",
		finds: "slurm QOS warn, slurm cells fail, slurm cells warn, postgresql settings in force warn", says: []string{"small-lab.yaml:13", "Slurm has no node with GPUs named new[1-2]", "correct the file"}},
	{name: "everybody can read the password", yaml: "s|postgres:///fairlease?|postgres://fairlease:secret@/fairlease?|", finds: "configuration mode of password fail", says: []string{yaml + " has mode 0644", ".pgpass"}},
	{name: "the daemon has not read the file again", yaml: "s/^  term: 15m/  term: 20m/", finds: "postgresql settings in force warn", says: []string{"term", "systemctl reload fairlease"}},
	{name: "the heartbeats' folder is root's", make: "chown root /run/fairlease", undo: "chown fairlease /run/fairlease", finds: "configuration heartbeats warn", says: []string{"/run/fairlease", "tmpfiles.d"}},

	// PostgreSQL.
	{name: "there is no database", yaml: "s|///fairlease?|///fairleese?|", finds: "postgresql connection fail", says: []string{`database "fairleese" does not exist`, "createdb --owner fairlease"}},
	{name: "doctor runs as root", asRoot: true, finds: "postgresql connection fail", says: []string{`role "root" does not exist`, "runuser -u fairlease"}},
	{name: "the password is wrong", make: "chgrp fairlease " + yaml + "; chmod 0640 " + yaml + "; sed -i 's|postgres:///fairlease?host=/var/run/postgresql|postgres://fairlease:wrong@127.0.0.1/fairlease|' " + yaml,
		undo:  "sed -i 's|postgres://fairlease:wrong@127.0.0.1/fairlease|postgres:///fairlease?host=/var/run/postgresql|' " + yaml + "; chmod 0644 " + yaml,
		finds: "postgresql connection fail", says: []string{"password authentication failed", "FAIRLEASE_DATABASE_URL"}},
	{name: "migrate did not run", make: fmt.Sprintf(spare, "fairlease"), undo: unspare, finds: "parts database schema fail", says: []string{"fairlease migrate"}},
	{name: "migrate ran as another user", make: fmt.Sprintf(spare, "postgres") + "; runuser -u postgres -- fairlease migrate", undo: unspare,
		finds: "parts database schema fail", says: []string{"it belongs to user postgres", "grant fairlease_daemon to fairlease"}},
	{name: "the schema is of a newer version", make: "runuser -u postgres -- psql -q -d fairlease -c 'insert into fairlease.schema_version (version_id, is_applied) values (9999, true)'",
		undo: "runuser -u postgres -- psql -q -d fairlease -c 'delete from fairlease.schema_version where version_id = 9999'", finds: "parts database schema fail", says: []string{"9999", "newer version of fairlease"}},
	{name: "PostgreSQL does not run", make: "systemctl stop postgresql", undo: "systemctl start postgresql", finds: "postgresql connection fail", says: []string{"/var/run/postgresql", "systemctl enable --now postgresql"}},

	// Slurm.
	{name: "the REST daemon does not run", make: "systemctl stop fairlease-slurmrestd; rm -f /run/fairlease-slurmrestd/socket", undo: "systemctl start fairlease-slurmrestd",
		finds: "parts fairlease-slurmrestd.service warn, slurm connection fail", says: []string{"/run/fairlease-slurmrestd/socket", "systemctl enable --now fairlease-slurmrestd"}},
	{name: "the REST daemon is another user's", yaml: "s|unix:///run/fairlease-slurmrestd/socket|unix:///run/slurmrestd/slurmrestd.sock|", finds: "slurm connection fail", says: []string{"slurmrestd.sock is another user's", "unix:///run/fairlease-slurmrestd/socket"}},
	{name: "fairlease is no operator", make: "sacctmgr -iQ modify user fairlease set adminlevel=none", undo: "sacctmgr -iQ modify user fairlease set adminlevel=operator", finds: "slurm rights fail",
		says: []string{"sacctmgr modify user fairlease set adminlevel=operator"}},
	{name: "the token has no user", yaml: "s|^  token_file: .*|  token_file: /etc/fairlease/token|", finds: "configuration file fail", says: []string{"slurm.user and slurm.token_file go together"}},
	{name: "the token's file is missing", yaml: tokened, finds: "slurm connection fail", says: []string{"/etc/fairlease/token", "scontrol token"}},
	{name: "the token is root's", make: "(umask 077; echo x >/etc/fairlease/token); cp -p " + yaml + " /root/kept.yaml; sed -i '" + tokened + "' " + yaml,
		undo: "mv /root/kept.yaml " + yaml + "; rm /etc/fairlease/token", finds: "slurm connection fail", says: []string{"/etc/fairlease/token", "permission denied", "daemon's user"}},
	{name: "the token has expired", make: "echo e30.eyJpYXQiOjEsImV4cCI6Mn0.x >/etc/fairlease/token; chown fairlease /etc/fairlease/token; chmod 0600 /etc/fairlease/token; cp -p " + yaml + " /root/kept.yaml; sed -i '" + tokened + "' " + yaml,
		undo: "mv /root/kept.yaml " + yaml + "; rm /etc/fairlease/token", finds: "slurm token warn", says: []string{"/etc/fairlease/token expired at 1970-01-01T00:00:02Z", "renew the file in time"}},
	{name: "the packaged slurmrestd is to check users' tokens", yaml: "/^slurm:/,/^database:/ s|^  jwt: auto|  jwt: unix:///run/fairlease-slurmrestd/socket|",
		finds: "web tokens warn", says: []string{"answers without looking at tokens", "start a slurmrestd with -a rest_auth/jwt"}},
	{name: "scontrol is elsewhere", yaml: "s|^  scontrol: .*|  scontrol: /opt/slurm/bin/scontrol|", finds: "slurm scontrol fail", says: []string{"/opt/slurm/bin/scontrol", "set slurm.scontrol"}},
	{name: "Slurm does not count GPUs", conf: "s/^AccountingStorageTRES=.*/AccountingStorageTRES=cpu/", finds: "slurm AccountingStorageTRES fail, slurm AccountingStorageTRES warn", says: []string{"add gres/gpu to AccountingStorageTRES"}},
	{name: "KillWait is too long", conf: "s/^KillWait=.*/KillWait=120/", finds: "slurm KillWait fail", says: []string{"KillWait=2m", "lease.grant_timeout"}},
	{name: "there is no licence", conf: "s/^Licenses=.*//", finds: "slurm gate warn", says: []string{"slurm.conf has no licence fairlease", "Licenses=fairlease:1000000"}},
	{name: "Slurm preempts by itself", conf: "$ a " + urgent, finds: "slurm partitions on the same nodes warn, slurm PreemptType fail", says: []string{"partition gpu: Slurm may requeue its jobs for jobs of partition urgent", "set PreemptMode=OFF in the line of partition gpu", "preemption: known"}},
	{name: "Slurm preempts in another partition", conf: "s/ MaxCPUsPerNode=15/& PreemptMode=OFF/;$ a " + urgent, finds: "slurm partitions on the same nodes warn", says: []string{"urgent (16 GPUs)"}},
	{name: "Slurm preempts by QOS, within one", conf: "$ a PreemptType=preempt/qos\\nPreemptMode=REQUEUE,WITHIN", finds: "slurm PreemptType fail",
		says: []string{"partition gpu: Slurm may requeue its jobs of QOS normal for others of that QOS", "WITHIN out of PreemptMode"}},
	{name: "jobs without GPUs may take whole nodes", conf: "s/ MaxCPUsPerNode=15//", finds: "slurm jobs without GPUs warn", says: []string{"partition gpu", "opt_out.no_gpus: refuse"}},
	{name: "jobs without GPUs may take whole nodes in spite of a limit", conf: "s/ MaxCPUsPerNode=15/ MaxCPUsPerNode=16/", finds: "slurm jobs without GPUs warn", says: []string{"gpu (MaxCPUsPerNode=16, nodes have 16 CPUs)"}},
	{name: "another partition has the same nodes", conf: "$ a PartitionName=debug Nodes=v1 MaxTime=7-0 MaxCPUsPerNode=8", finds: "slurm partitions on the same nodes warn", says: []string{"debug (4 GPUs)", "MaxTRESPerJob=gres/gpu=0"}},
	{name: "this host does not know a partition's group", conf: "s/ MaxCPUsPerNode=15/& AllowGroups=nosuchgroup/", finds: "slurm AllowGroups warn", says: []string{"nosuchgroup (partition gpu)", "getent group"}},
	{name: "users may open the gates of sessions", make: "sed -i s/^protect_gate=yes/protect_gate=no/ /etc/slurm/fairlease-plugin.conf", undo: "sed -i s/^protect_gate=no/protect_gate=yes/ /etc/slurm/fairlease-plugin.conf",
		finds: "slurm gates of sessions warn", says: []string{"/etc/slurm/fairlease-plugin.conf", "operator_uids"}},
	{name: "scrontab is on", conf: "$a ScronParameters=enable", finds: "slurm ways out warn", says: []string{"ScronParameters=enable"}},
	{name: "bound GPUs have no limit", yaml: "/^bind:/,/^start:/ s/^  quiet: .*/  quiet: 0s/", finds: "slurm ways out warn, postgresql settings in force warn", says: []string{"bind.quiet: 0s", "set it to a time, as to 12h"}},
	{name: "the limit on bound GPUs is none", yaml: "/^bind:/,/^start:/ { s/^  max: .*/  max: 100/; s/^  horizon: .*/  horizon: 1000/ }", finds: "slurm ways out warn, postgresql settings in force warn",
		says: []string{"bind.max: 100", "bind.horizon: 1000 terms of 15m"}},
	{name: "idle GPUs are at nobody's charge", yaml: "s/^  no_gpus: charge/  no_gpus: leave/", finds: "slurm ways out warn, slurm plugin opt_out.no_gpus warn", says: []string{"opt_out.no_gpus: leave", "set charge or refuse"}},
	{name: "Slurm requeues no job", conf: "s/^JobRequeue=.*/JobRequeue=0/", finds: "slurm JobRequeue warn", says: []string{"JobRequeue=0", "set JobRequeue=1"}},
	{name: "slurm.conf does not name the plugin", conf: "s/^JobSubmitPlugins=.*//", finds: "slurm submit plugin warn", says: []string{"JobSubmitPlugins"}},

	{name: "the partition is down", conf: "s/ MaxCPUsPerNode=15/& State=DOWN/", finds: "slurm partition gpu warn", says: []string{"16 GPUs, but State=DOWN", "scontrol update PartitionName=gpu State=UP"}},
	{name: "the partition gives no job a node", conf: "s/ MaxCPUsPerNode=15/& MaxNodes=0/", finds: "slurm partition gpu warn", says: []string{"MaxNodes=0", "MaxNodes=UNLIMITED"}},
	{name: "the partition is for root", conf: "s/ MaxCPUsPerNode=15/& RootOnly=YES/", finds: "slurm partition gpu warn", says: []string{"only root may submit jobs to it"}, newer: true},
	{name: "the partition lets in no tenant", conf: "s/ MaxCPUsPerNode=15/& AllowAccounts=nosuch/", finds: "slurm partition gpu warn", says: []string{"AllowAccounts=nosuch has no account of a tenant"}},
	{name: "the nodes have no GPUs", conf: "s/ Gres=[^ ]*//", finds: "slurm GPUs fail, slurm partition gpu warn, slurm look fail", says: []string{"GresTypes=gpu"}},
	{name: "munged does not run", make: "kill \"$(cat /run/munge/munged.pid)\"; while [ -e /run/munge/munged.pid ]; do sleep 0.05; done", undo: "setpriv --reuid=munge --regid=munge --init-groups munged --force --num-threads=2",
		finds: "slurm connection fail, web munge warn", says: []string{"start munged here and on slurmctld's host", "/run/munge/munge.socket.2"}},

	// The parts.
	{name: "the plugin is for another Slurm", make: `cd "$(dirname /usr/lib/*/slurm-wlm/job_submit_fairlease.so)"; mv job_submit_fairlease.so kept
echo 'const unsigned int plugin_version = 0x170b00;' | gcc -shared -o job_submit_fairlease.so -x c -`,
		undo: "cd /usr/lib/*/slurm-wlm; mv kept job_submit_fairlease.so", finds: "parts submit plugin's file fail", says: []string{"was built for Slurm 23.11.0", "before you restart slurmctld"}},
	{name: "the plugin has other settings", make: "sed -i s/^gate_seconds=.*/gate_seconds=60/ /etc/slurm/fairlease-plugin.conf", undo: "sed -i s/^gate_seconds=.*/gate_seconds=600/ /etc/slurm/fairlease-plugin.conf",
		finds: "slurm plugin gate_seconds warn", says: []string{"/etc/slurm/fairlease-plugin.conf", "scontrol reconfigure"}},
	{name: "the plugin excludes another account", make: "echo exclude_accounts=nlp >>/etc/slurm/fairlease-plugin.conf", undo: "sed -i /^exclude_accounts=nlp/d /etc/slurm/fairlease-plugin.conf",
		finds: "slurm plugin exclude_accounts warn", says: []string{"exclude_accounts=nlp in /etc/slurm/fairlease-plugin.conf", "exclude.accounts is []", "scontrol reconfigure"}},
	{name: "the SPANK plugin is missing", make: "mv /usr/lib/*/slurm-wlm/spank_fairlease.so /root/", undo: "mv /root/spank_fairlease.so /usr/lib/*/slurm-wlm/", finds: "parts SPANK plugin warn", says: []string{"/etc/slurm/plugstack.conf:1", "slurmplugin install"}},
	{name: "the Python library is old", make: "cd /usr/lib/python3/dist-packages/fairlease; sed -i.kept 's/^__version__ = .*/__version__ = \"0.0.9\"/' __init__.py",
		undo: "cd /usr/lib/python3/dist-packages/fairlease; mv __init__.py.kept __init__.py", finds: "parts Python library warn", says: []string{"fairlease 0.0.9", "install python3-fairlease"}},
	{name: "the standby has the version before", make: `PGAPPNAME="fairlease serve fairlease 0.0.9 login2" runuser -u fairlease -- psql -q -d fairlease -c 'select pg_sleep(600)' >/dev/null 2>&1 </dev/null &
until runuser -u postgres -- psql -Atc "select application_name from pg_stat_activity" | grep -q login2; do kill -0 $!; done`,
		undo: "runuser -u postgres -- psql -qAtc \"select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%login2'\"", finds: "parts daemon warn", says: []string{"0.0.9 on login2", "systemctl restart fairlease"}},
	{name: "the daemon is not enabled", make: "systemctl disable fairlease", undo: "systemctl enable fairlease", finds: "parts fairlease.service warn", says: []string{"systemctl enable fairlease"}},
	{name: "the daemon does not run", make: "systemctl stop fairlease", undo: "systemctl start fairlease", finds: "parts fairlease.service warn", says: []string{"systemctl start fairlease"}},

	// The web page.
	{name: "the page's port is taken", make: `systemctl stop fairlease-web
setsid python3 -m http.server --bind 127.0.0.1 9964 >/dev/null 2>&1 </dev/null & echo $! >/run/other
until (exec 3<>/dev/tcp/127.0.0.1/9964) 2>/dev/null; do kill -0 "$(cat /run/other)"; done`,
		undo: "kill \"$(cat /run/other)\"; while kill -0 \"$(cat /run/other)\" 2>/dev/null; do :; done; systemctl start fairlease-web", finds: "parts fairlease-web.service warn, web listen fail", says: []string{"another program has 127.0.0.1:9964", "ss -ltnp"}},
	{name: "the page's user may not read", make: `runuser -u postgres -- psql -q -d fairlease -c 'revoke fairlease_reader from "fairlease-web"'`,
		undo: `runuser -u postgres -- psql -q -d fairlease -c 'grant fairlease_reader to "fairlease-web"'`, finds: "web database user fail", says: []string{"fairlease-web", "grant fairlease_reader"}},
	{name: "the page's key is root's", make: `mkdir /etc/fairlease/tls; echo 'tls_server_config: {cert_file: crt, key_file: key}' >/etc/fairlease/tls/web.yaml; echo x >/etc/fairlease/tls/crt; (umask 077; echo x >/etc/fairlease/tls/key)
sed -i '/^web:/,$ s|^  web_config: ""|  web_config: /etc/fairlease/tls/web.yaml|' ` + yaml,
		undo: `sed -i 's|^  web_config: /etc.*|  web_config: ""|' ` + yaml + "; rm -r /etc/fairlease/tls", finds: "web web_config fail", says: []string{"user fairlease-web may not read /etc/fairlease/tls/key", "chmod 0640"}},
}

// mistakes makes each mistake, one at a time. doctor finds it and nothing else, and fails unless the mistake is no obstacle.
func (s *site) mistakes(suite string) {
	begin, quiet := time.Now(), s.examine(false)
	for _, x := range quiet {
		s.t.Errorf("without a mistake doctor finds: %+v", x)
	}
	conf := filepath.Join(s.Dir, "conf", "slurm.conf")
	good, err := os.ReadFile(conf)
	if err != nil {
		s.t.Fatal(err)
	}
	reconfigure := func() {
		if err := s.Reconfigure(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	for i, m := range mistakes {
		if m.newer && suite == "trixie" {
			continue
		}
		switch {
		case m.yaml != "":
			s.do(fmt.Sprintf("cp -p %[1]s /root/kept.yaml; sed -i '%[2]s' %[1]s; ! cmp -s %[1]s /root/kept.yaml", yaml, m.yaml))
		case m.conf != "":
			s.do("sed -i '" + m.conf + "' /etc/slurm/slurm.conf")
			reconfigure()
		case m.make != "":
			s.do(m.make)
		}
		found := s.examine(m.asRoot)
		var checks []string // each once
		text := ""
		for _, x := range found {
			if check := fmt.Sprintf("%s %s %s", x.Area, x.Check, x.Level); !slices.Contains(checks, check) {
				checks = append(checks, check)
			}
			text += fmt.Sprintf("  %s %s: %s\n    means: %s\n    do:    %s\n", x.Level, x.Check, x.Found, x.Means, x.Do)
		}
		s.t.Logf("%d of %d: %s\n%s", i+1, len(mistakes), m.name, text)
		if got := strings.Join(checks, ", "); got != m.finds {
			s.t.Errorf("%s: doctor finds %q, want %q\n%s", m.name, got, m.finds, text)
		}
		for _, want := range m.says {
			if !strings.Contains(text, want) {
				s.t.Errorf("%s: doctor does not say %q:\n%s", m.name, want, text)
			}
		}
		switch {
		case m.yaml != "":
			s.do("mv /root/kept.yaml " + yaml)
		case m.conf != "":
			if err := os.WriteFile(conf, good, 0o644); err != nil {
				s.t.Fatal(err)
			}
			if i+1 == len(mistakes) || mistakes[i+1].conf == "" {
				reconfigure()
			}
		case m.undo != "":
			s.do(m.undo)
		}
	}
	for _, x := range s.examine(false) {
		s.t.Errorf("after the mistakes doctor finds: %+v", x)
	}
	s.t.Logf("%d mistakes in %.0f s", len(mistakes), time.Since(begin).Seconds())
}

// examine gives the findings of doctor that are not ok. Its exit status is 1 if one of them is a failure, else 0.
func (s *site) examine(asRoot bool) []doctor.Finding {
	command := "runuser -u fairlease -- fairlease doctor --json"
	if asRoot {
		command = "fairlease doctor --json"
	}
	out, err := s.try(command)
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		s.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	found = slices.DeleteFunc(found, func(x doctor.Finding) bool { return x.Level == doctor.OK })
	fails := slices.ContainsFunc(found, func(x doctor.Finding) bool { return x.Level == doctor.Fail })
	var exit *exec.ExitError
	if code := map[bool]int{true: 1}[fails]; errors.As(err, &exit) && exit.ExitCode() != code || (err != nil) != fails {
		s.t.Errorf("%s: %v, want exit status %d", command, err, code)
	}
	return found
}
