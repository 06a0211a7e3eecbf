#!/bin/sh
# After the files are in place. Debian calls it with "configure" and the version there was before, if any; RPM with 1 for an installation
# and 2 for an upgrade.
set -e

# The service runs as this user. systemd would make one for each run; this one stays, so that keys and certificates can be given to it.
if ! getent passwd curfew >/dev/null; then
	own_group=--user-group
	if getent group curfew >/dev/null; then own_group="--gid curfew"; fi
	useradd --system $own_group --home-dir /var/lib/curfew --no-create-home --shell /usr/sbin/nologin --comment Curfew curfew
fi

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1 $2" in
"configure " | "1 ") echo "Curfew is not started yet. Settings: /etc/curfew/curfew.env. To start it: systemctl enable --now curfew" ;;
*) # An upgrade ends well even if the service does not start again, for example because it refuses its settings.
	systemctl try-restart curfew.service || echo "Curfew was not started again. See: journalctl -u curfew" ;;
esac
