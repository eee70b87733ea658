package testcluster

import (
	"fmt"
	"slices"
	"strings"
)

const firstSlurmdPort = 17000

// The cluster's configuration files, named as below /etc/slurm.
func (o Options) files(pluginDir string) map[string]string {
	files := map[string]string{
		"slurm.conf":            o.slurmConf(pluginDir),
		"gres.conf":             o.gresConf(),
		"cgroup.conf":           "CgroupPlugin=disabled\n",
		"slurmdbd.conf":         slurmdbdConf,
		"my.cnf":                mariadbConf,
		"init.sql":              initSQL,
		"fairlease-plugin.conf": o.PluginConf,
	}
	if o.Freezer {
		files["cgroup.conf"] = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"
	}
	if o.Plugin == PluginC {
		files["plugstack.conf"] = "optional spank_fairlease.so\n"
	}
	if o.Topology != "" {
		files["topology.conf"] = o.Topology
	}
	if o.JWT {
		files["slurm.conf"] += jwtConf
		files["slurmdbd.conf"] += jwtConf
	}
	if o.Backup {
		files["backup.conf"] = strings.ReplaceAll(files["slurm.conf"], "/"+string(Slurmctld)+".", "/"+string(Backup)+".") // its own log and pid file
	}
	return files
}

// backupConf names the second slurmctld. Both hosts are one machine, so neither may take the port on all addresses.
const backupConf = `SlurmctldHost=backup(127.0.0.2)
CommunicationParameters=NoCtldInAddrAny
`

const slurmdbdConf = `AuthType=auth/munge
DbdHost=localhost
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurm/slurmdbd.pid
`

// Snapshot isolation ends slurmdbd when two of its sessions write the same row. Small, without a network, and safe where it is killed
// but not where the machine fails: its files are on a tmpfs that dies with the cluster.
const mariadbConf = `[mariadbd]
user=mysql
skip-networking
init-file=/etc/slurm/init.sql
skip-name-resolve
skip-log-bin
performance-schema=off
socket=/run/mysqld/mysqld.sock
datadir=/var/lib/mysql
innodb-buffer-pool-size=64M
innodb-log-file-size=8M
innodb-flush-log-at-trx-commit=2
innodb-doublewrite=off
innodb-use-native-aio=off
innodb-lock-wait-timeout=900
loose-innodb-snapshot-isolation=OFF
`

// The database must be there before slurmdbd: the client library of MariaDB 11.8.9 refuses every result on a connection that once
// failed, and slurmdbd makes a missing database on just such a one.
const initSQL = `create database if not exists slurm_acct_db;
create user if not exists slurm@localhost identified via unix_socket;
grant all on slurm_acct_db.* to slurm@localhost;
`

func (o Options) slurmConf(pluginDir string) string {
	var b strings.Builder
	gres := "gpu"
	if slices.ContainsFunc(o.Nodes, func(g NodeGroup) bool { return g.Shards > 0 }) {
		gres += ",shard"
	}
	if slices.ContainsFunc(o.Nodes, func(g NodeGroup) bool { return g.MPS > 0 }) {
		gres += ",mps"
	}
	backup, proctrack := "", "linuxproc"
	if o.Backup {
		backup = backupConf
	}
	if o.Freezer {
		proctrack = "cgroup"
	}
	fmt.Fprintf(&b, `ClusterName=%s
SlurmctldHost=fairlease(127.0.0.1)
%sSlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd-%%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd-%%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd-%%n.log
SlurmctldDebug=verbose
SlurmdDebug=info
PluginDir=%s
ReturnToService=2
ProctrackType=proctrack/%s
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
GresTypes=%s
SchedulerType=sched/backfill
SchedulerParameters=%s
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=%s
KillWait=%d
MinJobAge=%d
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=60
UnkillableStepTimeout=60
MaxJobCount=50000
MaxArraySize=10001
JobRequeue=1
`, o.ClusterName, backup, pluginDir, proctrack, gres, o.Scheduler, o.Tres, o.KillWait, o.MinJobAge)
	switch o.Plugin {
	case PluginC:
		b.WriteString("JobSubmitPlugins=fairlease\n")
	case PluginLua:
		b.WriteString("JobSubmitPlugins=lua\n")
	}
	if o.Topology != "" {
		b.WriteString("TopologyPlugin=topology/tree\n")
	}
	port := firstSlurmdPort
	for _, g := range o.Nodes {
		gres := ""
		if g.GPUs > 0 {
			gres = fmt.Sprintf(" Gres=gpu:%s:%d", g.Model, g.GPUs)
			if g.Shards > 0 {
				gres += fmt.Sprintf(",shard:%d", g.Shards)
			}
			if g.MPS > 0 {
				gres += fmt.Sprintf(",mps:%d", g.MPS)
			}
		}
		fmt.Fprintf(&b, "NodeName=%s NodeHostname=fairlease NodeAddr=127.0.0.1 Port=%s CPUs=%d RealMemory=%d%s %s\n",
			bracket(g.Prefix, 1, g.Count), bracket("", port, g.Count), g.CPUs, g.MemoryMB, gres, g.Extra)
		port += g.Count
	}
	for _, p := range o.Partitions {
		isDefault := "NO"
		if p.Default {
			isDefault = "YES"
		}
		nodes := p.Nodes
		setDefault(&nodes, "ALL")
		fmt.Fprintf(&b, "PartitionName=%s Nodes=%s Default=%s State=UP %s\n", p.Name, nodes, isDefault, p.Extra)
	}
	b.WriteString(o.ExtraConf)
	b.WriteString("\n")
	return b.String()
}

func (o Options) gresConf() string {
	var b strings.Builder
	b.WriteString("AutoDetect=off\n")
	for _, g := range o.Nodes {
		if g.GPUs == 0 {
			continue
		}
		names := bracket(g.Prefix, 1, g.Count)
		fmt.Fprintf(&b, "NodeName=%s Name=gpu Type=%s File=/dev/%s\n", names, g.Model, bracket("fakegpu", 0, g.GPUs))
		if g.Shards > 0 {
			fmt.Fprintf(&b, "NodeName=%s Name=shard Count=%d\n", names, g.Shards)
		}
		if g.MPS > 0 {
			fmt.Fprintf(&b, "NodeName=%s Name=mps Count=%d\n", names, g.MPS)
		}
	}
	return b.String()
}

// bracket is the host list of count names from first on.
func bracket(prefix string, first, count int) string {
	if count == 1 {
		return fmt.Sprintf("%s%d", prefix, first)
	}
	return fmt.Sprintf("%s[%d-%d]", prefix, first, first+count-1)
}

func (o Options) mostGPUs() int {
	most := 0
	for _, g := range o.Nodes {
		most = max(most, g.GPUs)
	}
	return most
}

// prepareScript makes users, folders and keys in a fresh root; it runs there as root.
func (o Options) prepareScript() string {
	var b strings.Builder
	b.WriteString(`set -eu
printf '127.0.0.1 localhost fairlease\n127.0.0.2 backup\n' >/etc/hosts
install -d -o munge -g munge -m 0700 /etc/munge
dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 status=none
chown munge:munge /etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
install -d -o munge -g munge -m 0755 /run/munge
install -d -o munge -g munge -m 0700 /var/log/munge
install -d -o mysql -g mysql -m 0755 /run/mysqld
install -d -o slurm -g slurm -m 0755 /run/slurm /var/spool/slurmctld
install -d -m 0755 /run/fairlease /run/testcluster
(umask 0377 && head -c 32 /dev/urandom >/run/slurm/jwt.key && chown slurm:slurm /run/slurm/jwt.key)
chown slurm:slurm /var/log/slurm /etc/slurm/slurmdbd.conf
chmod 0600 /etc/slurm/slurmdbd.conf
user() {
	echo "$1:x:$2:$2::/home/$1:/bin/bash" >>/etc/passwd
	echo "$1:x:$2:" >>/etc/group
	install -d -o "$2" -g "$2" -m 0755 "/home/$1"
}
`)
	fmt.Fprintf(&b, "user %s 2000\ninstall -d -o 2000 -g 2000 -m 0755 /run/slurmrestd\n", Operator)
	for i, u := range o.users() {
		fmt.Fprintf(&b, "user %s %d\n", u, 2001+i)
	}
	return b.String()
}

// accountScript fills slurmdbd; it runs inside as root.
func (o Options) accountScript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "set -eu\nsacctmgr -iQ add cluster %s\n", o.ClusterName)
	fmt.Fprintf(&b, "sacctmgr -iQ add user %s account=root adminlevel=operator\n", Operator)
	for _, q := range o.QOS {
		fmt.Fprintf(&b, "sacctmgr -iQ add qos %s %s\n", q.Name, q.Words)
	}
	for _, a := range o.Accounts {
		parent, shares := a.Parent, a.Shares
		setDefault(&parent, "root")
		setDefault(&shares, 1)
		fmt.Fprintf(&b, "sacctmgr -iQ add account %s parent=%s share=%d\n", a.Name, parent, shares)
		if len(a.Users) > 0 {
			fmt.Fprintf(&b, "sacctmgr -iQ add user %s account=%s\n", strings.Join(a.Users, ","), a.Name)
		}
	}
	for _, q := range o.QOS {
		fmt.Fprintf(&b, "sacctmgr -iQ modify account root set qos+=%s\n", q.Name)
	}
	return b.String()
}
