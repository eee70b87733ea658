#!/bin/sh
# Finishes a base tree with the work that every cluster would otherwise repeat at its start. mmdebstrap calls it with the tree's path.
set -eu
chroot "$1" /bin/sh -eu <<'IN_TREE'
rm -rf /var/lib/mysql
install -d -o mysql -g mysql -m 0700 /var/lib/mysql
mariadb-install-db --user=mysql --datadir=/var/lib/mysql --skip-test-db --force --innodb-log-file-size=8M >/dev/null
rm -rf /usr/share/doc /usr/share/man /usr/share/locale /var/cache/apt /var/lib/apt/lists
IN_TREE
