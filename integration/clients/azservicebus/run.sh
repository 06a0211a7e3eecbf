#!/bin/sh
# Runs live tests of Microsoft's azservicebus against Curfew, in a network namespace of its own.
#
# run.sh CURFEW CA CERT KEY SCRATCH   the binary, the server's certificate and its authority's, an empty folder
#
# The tests are on stdin, one a line: a binary and a name. They run one after another, since some name their queues after the second.
set -eu
curfew=$1 ca=$2 cert=$3 key=$4 scratch=$5

ip link set lo up
echo 127.0.0.77 server >"$scratch/hosts" # one of the tests wants nobody to be at 127.0.0.1:5671
mount --bind "$scratch/hosts" /etc/hosts
CURFEW_DATA_DIR=$scratch/store CURFEW_AMQPS_ADDR=server:5671 CURFEW_HTTPS_ADDR=server:443 CURFEW_TLS_CERT=$cert CURFEW_TLS_KEY=$key \
	CURFEW_SERVICEBUS_EMULATOR=true CURFEW_SERVICEBUS_CONFIG=clients/azservicebus/Config.json \
	CURFEW_SERVICEBUS_KEYS='root=c2VjcmV0,nomanage=bm9tYW5hZ2U=:listen+send,send=c2VuZA==:send,listen=bGlzdGVu:listen' \
	"$curfew" serve >"$scratch/curfew.log" 2>&1 &
broker=$!
until grep -q 'Server startup complete' "$scratch/curfew.log"; do
	kill -0 $broker || { cat "$scratch/curfew.log"; exit 1; }
	sleep 0.1
done

# What Azure's command-line tool is asked for: a token of Entra ID.
mkdir -p "$scratch/bin" "$scratch/package"
cat >"$scratch/bin/az" <<'AZ'
#!/bin/sh
if [ "$1" = version ]; then echo '{"azure-cli":"2.60.0"}'; exit 0; fi
echo '{"accessToken":"eyJhbGciOiJub25lIn0.eyJhdWQiOiJ4In0.","expiresOn":"2099-01-01 00:00:00.000000","expires_on":4070908800,"tokenType":"Bearer"}'
AZ
chmod +x "$scratch/bin/az"
: >"$scratch/.env" >"$scratch/package/.env"

export PATH="$scratch/bin:$PATH" SSL_CERT_FILE="$ca" AZURE_RECORD_MODE=live AZURE_TOKEN_CREDENTIALS=AzureCLICredential
export SERVICEBUS_ENDPOINT=server SERVICEBUS_ENDPOINT_PREMIUM=server
policy() { echo "Endpoint=sb://server/;SharedAccessKeyName=$1;SharedAccessKey=$2"; }
SERVICEBUS_CONNECTION_STRING=$(policy root c2VjcmV0)
SERVICEBUS_CONNECTION_STRING_NO_MANAGE=$(policy nomanage bm9tYW5hZ2U=)
SERVICEBUS_CONNECTION_STRING_SEND_ONLY=$(policy send c2VuZA==)
SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY=$(policy listen bGlzdGVu)
SERVICEBUS_CONNECTION_STRING_PREMIUM=$SERVICEBUS_CONNECTION_STRING
export SERVICEBUS_CONNECTION_STRING SERVICEBUS_CONNECTION_STRING_PREMIUM SERVICEBUS_CONNECTION_STRING_NO_MANAGE \
	SERVICEBUS_CONNECTION_STRING_SEND_ONLY SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY

cd "$scratch/package"
while read -r binary test; do
	"$binary" -test.run "^$test\$" -test.timeout 70s -test.v </dev/null 2>&1 || true
done
kill $broker
wait $broker
