// Package testcluster boots a real Slurm on this machine, for tests and for the demo.
//
// One cluster is one set of Linux namespaces (mounts, processes, network, host name) over an overlay of a cached
// Debian tree. Inside it looks like one machine with a controller, a database, a REST server and several slurmd that pretend to have
// GPUs; outside nothing is mounted and no port is open. Process 1 of the namespaces is the whole cluster's life: when it
// ends, by Down or because the test that owns it died, the kernel ends every daemon and every job and drops every mount.
//
//	this machine                              namespaces of one cluster
//	<cache>/base/forky-<recipe>/tree  ──────►  /        (lower; the upper layer is a tmpfs)
//	<dir>/run                         ──────►  /run     (sockets, pid files, heartbeats)
//	<dir>/conf                        ──────►  /etc/slurm
//	<dir>/home                        ──────►  /home    (users' scripts and output)
//	<dir>/log                         ──────►  /var/log/slurm
//
// Unix sockets cross network namespaces, so slurmrestd is reached at <dir>/run/slurmrestd/slurmrestd.sock; commands are
// run with nsenter. Everything needs root. StartPostgres is apart: a private PostgreSQL that needs no Slurm and no root.
package testcluster
