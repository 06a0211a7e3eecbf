#!/bin/sh
# Runs amqp091-go's own tests against Curfew, in a network and mount namespace of its own.
#
# run.sh CURFEW TESTS MODULE SCRATCH   two binaries, the module's folder (its tests read files there), an empty folder
set -eu
curfew=$1 tests=$2 module=$3 scratch=$4

ip link set lo up
mkdir "$scratch/data"
mount -t tmpfs -o size=256m tmpfs "$scratch/data"
CURFEW_DATA_DIR=$scratch/data/store "$curfew" serve >"$scratch/curfew.log" 2>&1 &
broker=$!
until grep -q 'Server startup complete' "$scratch/curfew.log"; do
	kill -0 $broker || { cat "$scratch/curfew.log"; exit 1; }
	sleep 0.1
done

# Instead of rabbitmqctl set_vm_memory_high_watermark: the alarm is the disk's.
cat >"$scratch/rabbitmqctl" <<CTL
#!/bin/sh
case "\$*" in
"set_vm_memory_high_watermark 0.0001")
	dd if=/dev/zero of="$scratch/data/ballast" bs=1M 2>/dev/null
	until grep -q 'publishers are blocked' "$scratch/curfew.log"; do sleep 0.1; done
	;;
"set_vm_memory_high_watermark 0.4")
	rm "$scratch/data/ballast"
	until grep -q 'publishers are no longer blocked' "$scratch/curfew.log"; do sleep 0.1; done
	sleep 0.5 # for the connections that were held to see that their clients are gone
	;;
*) exit 1 ;;
esac
CTL
chmod +x "$scratch/rabbitmqctl"

cd "$module"
status=0
RABBITMQ_RABBITMQCTL_PATH=$scratch/rabbitmqctl "$tests" -test.v -test.timeout 4m || status=$?
kill $broker
wait $broker || status=$?
exit $status
