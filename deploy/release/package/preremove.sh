#!/bin/sh
# Before the files go. Debian calls it with "remove" or "upgrade"; RPM with 0 for the last version and 1 for an upgrade.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl stop curfew.service
systemctl disable curfew.service || true # refused where it is masked
