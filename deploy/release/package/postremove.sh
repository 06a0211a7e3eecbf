#!/bin/sh
# After the files are gone. Debian calls it with "purge" for `apt purge`; RPM has no such thing. Messages and settings stay until then.
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/curfew /var/lib/private/curfew /etc/curfew
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
