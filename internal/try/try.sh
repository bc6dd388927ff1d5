#!/bin/sh
# What a lock does, shown with a broker of its own on a free port of the loopback address. `make try` runs it, with the
# commands on the path. It needs a POSIX shell and ends by itself; its exit status is 0 only if all of it worked.
set -eu

dir=$(mktemp -d)
daemon=
waiter=
finish() {
	status=$?
	for pid in $waiter $daemon; do
		kill "$pid" 2>/dev/null || true # it may have ended
		wait "$pid" 2>/dev/null || true # by our signal
	done
	if [ "$status" -ne 0 ] && [ -s "$dir/log" ]; then
		echo "--- the broker's log:" >&2
		cat "$dir/log" >&2
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n# %s\n' "$*"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}
# until_true COMMAND...: wait for it, ten seconds at most.
until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || { echo "waited in vain for: $*" >&2; exit 1; }
		kill -0 "$daemon" 2>/dev/null || { echo "the broker has ended" >&2; exit 1; }
		sleep 0.05
	done
}

say "Start a broker."
echo '$ oclocks-daemon --listen 127.0.0.1:0 --http off &'
oclocks-daemon --listen 127.0.0.1:0 --http off 2>"$dir/log" & # not by run: $! must be the daemon itself
daemon=$!
until_true grep -q 'msg=serving' "$dir/log"
NATS_URL=$(sed -n 's/.*msg=serving url=\([^ ]*\).*/\1/p' "$dir/log")
export NATS_URL
run oclocks-cli ping

say "Take a lock. It is held until it is released with its key, or for 30 seconds."
run oclocks-cli acquire --quiet --ttl 30s --holder "the first" orders/4711 | tee "$dir/grant"
key=$(tail -n 1 "$dir/grant" | cut -d ' ' -f 1)

say "Somebody else tries, and is refused at once: exit code 75."
status=0
run oclocks-cli lock --nonblock orders/4711 -- echo "never printed" || status=$?
[ "$status" -eq 75 ] || { echo "expected the exit code 75, got $status" >&2; exit 1; }

say "A third one stands in the queue for it, with a command to run while it has the lock."
run oclocks-cli lock --wait 20s --holder "the second" orders/4711 -- \
	sh -c 'echo "the second has $OCLOCKS_NAME now, with fencing token $OCLOCKS_TOKEN"' &
waiter=$!
queued() { oclocks-cli query orders/4711 | grep -q "the second"; }
until_true queued
run oclocks-cli query orders/4711

say "The first one releases it; in the same moment the second has it."
run oclocks-cli release orders/4711 "$key"
wait "$waiter"
waiter=

say "The command has ended, and the lock is free again."
run oclocks-cli query --quiet orders/4711 | tee "$dir/state"
[ "$(tail -n 1 "$dir/state")" = free ] || { echo "expected a free lock" >&2; exit 1; }

say "Stop the broker."
run kill "$daemon"
wait "$daemon"
daemon=
