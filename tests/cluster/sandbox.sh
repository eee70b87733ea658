#!/bin/bash
# Process 1 of a cluster: builds the cluster's root from a base tree, then lives as long as the cluster and reaps orphans.
# sandbox.sh DIR TREE GPUS attached|detached GROUP
# GROUP is of this machine's freezer (cgroup v1), made for the cluster and all that it has of it; - = none.
set -eu
dir=$1 tree=$2 gpus=$3 life=$4 group=$5
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
read -r pid _ </proc/self/stat # /proc is still the machine's: this is the process id seen outside
readlink /proc/self/ns/mnt >"$dir/run/namespace"

hostname fairlease
mount -t tmpfs -o mode=0755 tmpfs "$dir/scratch"
mkdir "$dir"/scratch/{upper,work,root}
root=$dir/scratch/root
mount -t overlay -o "lowerdir=$tree,upperdir=$dir/scratch/upper,workdir=$dir/scratch/work" overlay "$root"

share() {
	mkdir -p "$root/$2"
	mount --bind "$dir/$1" "$root/$2"
}
share run run
share conf etc/slurm
share home home
share log var/log/slurm

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
if [ "$group" != - ]; then
	mkdir -p "$group" # one of the name may have been killed
	mount -t tmpfs -o mode=0755 tmpfs "$root/sys/fs/cgroup"
	mkdir "$root/sys/fs/cgroup/freezer"
	mount --bind "$group" "$root/sys/fs/cgroup/freezer"
fi
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for ((i = 0; i < gpus; i++)); do
	mknod -m 666 "$root/dev/fakegpu$i" c 1 3
done

mkdir "$root/.machine"
cd "$root"
pivot_root . .machine
umount -l /.machine
rmdir /.machine
ip link set lo up
ip address add 192.0.2.1/32 dev lo # resolvers find no name where there is no address but 127.0.0.1
echo "$pid" >/run/supervisor.new
mv /run/supervisor.new /run/supervisor

if [ "$life" = attached ]; then
	read -r _ || : # the owner's end of the pipe closes when it ends, whatever ends it
	find /sys/fs/cgroup -name freezer.state -exec sh -c 'echo THAWED >"$1"' sh {} \; # what is frozen cannot be killed
else
	exec </dev/null >/dev/null 2>&1
	while :; do
		sleep 86400 &
		wait $!
	done
fi
