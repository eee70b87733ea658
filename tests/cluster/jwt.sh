#!/bin/bash
# Builds Slurm's auth/jwt, which Debian omits, from the source of the Slurm in a base tree.
# jwt.sh TREE MIRROR OUT: writes the plugin to OUT, or exits with 3 if the mirror lacks that source.
# It runs in its own mount namespace, which ends with it.
set -eu
tree=$1 mirror=$2 out=$3
work=$(dirname "$out")/.building-jwt
rm -rf "$work"
mkdir "$work"
mount -t tmpfs tmpfs "$work"
mkdir "$work"/{upper,work,root}
mount -t overlay -o "lowerdir=$tree,upperdir=$work/upper,workdir=$work/work" overlay "$work/root"
mount -t proc proc "$work/root/proc"
mount --bind /dev "$work/root/dev"
cp /etc/resolv.conf "$work/root/etc/"
[ -e /etc/hosts ] && cp /etc/hosts "$work/root/etc/"
chroot "$work/root" /bin/bash -eu -s "$mirror" <<'IN_TREE'
mirror=$1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
suite=$(awk '$1 == "deb" {print $3; exit}' /etc/apt/sources.list)
cat >/etc/apt/apt.conf.d/90jwt <<CONF
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
CONF
echo "deb-src $mirror $suite main" >/etc/apt/sources.list.d/source.list
apt-get update -q
apt-get install -y -q --no-install-recommends libjwt-dev libmunge-dev pkg-config
version=$(slurmctld -V | awk '{print $2}')
read -r sum _ file < <(apt-cache showsrc slurm-wlm | awk '/^[^ ]/ {sums = $1 == "Checksums-Sha256:"} sums && /\.orig\.tar/ && !/\.asc$/' | grep "_$version\.orig") || true
[ -n "${file:-}" ] || { echo "the mirror lists no source of Slurm $version" >&2; exit 3; }
cd /tmp
/usr/lib/apt/apt-helper download-file "$mirror/pool/main/s/slurm-wlm/$file" "$file" "SHA256:$sum" || { echo "the mirror has no $file" >&2; exit 3; }
mkdir source
tar -xf "$file" -C source --strip-components=1
cd source
./configure --prefix=/usr --sysconfdir=/etc/slurm --libdir="$(dirname /usr/lib/*/slurm-wlm)" --with-jwt --disable-static
for part in common jwt; do # the former since Slurm 26.05
	[ ! -d "src/plugins/auth/$part" ] || make -C "src/plugins/auth/$part"
done
cp src/plugins/auth/jwt/.libs/auth_jwt.so /tmp/
IN_TREE
cp "$work/root/tmp/auth_jwt.so" "$out.new"
mv "$out.new" "$out"
