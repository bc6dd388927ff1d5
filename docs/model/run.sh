#!/bin/sh
# Checks the models with Spin: run.sh [all|check|mutants|more] [DIR for the counterexamples; docs/model by default]
# Each check has a limit of time (LIMIT, seconds, 180) and of memory (MEM, MiB, 3072). It installs nothing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
to=$(cd "${2:-$here}" && pwd) || exit 1
LIMIT=${LIMIT:-180}
MEM=${MEM:-3072}
case $what in all | check | mutants | more) ;; *) echo "usage: run.sh [all|check|mutants|more] [DIR]"; exit 2 ;; esac
missing=
for tool in spin gcc timeout; do command -v $tool >/dev/null || missing="$missing $tool"; done
if [ -n "$missing" ]; then
	echo "model: NOT CHECKED: missing:$missing (Debian: apt-get install spin gcc coreutils)"
	[ "${MODEL_REQUIRED:-}" = 1 ] && exit 1
	exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# build MODEL SPINFLAGS CFLAGS: makes pan in a folder of its own and goes there
build() {
	rm -rf "$work/run" && mkdir "$work/run" && cd "$work/run" && cp "$here/$1.pml" . &&
		spin -a $2 "$1.pml" >spin.out 2>&1 && gcc -w $3 -DSAFETY -DCOLLAPSE -DMEMLIM="$MEM" -o pan pan.c 2>gcc.out ||
		{ cat spin.out gcc.out; echo "$1 $2: does not build"; exit 1; }
}

# verify MODEL BOUNDS [MAY_STOP]: no violation, and all of it was seen
verify() {
	build "$1" "$2" -O1
	timeout "$LIMIT" ./pan -E -m1000000 >pan.out 2>&1
	ended=$?
	if [ -f "$1.pml.trail" ]; then
		echo "VIOLATED   $1 $2"
		spin -t -T $2 "$1.pml" | story
		bad=1
	elif [ $ended = 0 ] && grep -q 'errors: 0' pan.out && ! grep -q 'max search depth too small\|memory limit\|interrupted\|not completed\|out of memory' pan.out; then
		echo "exhausted  $1 $2: $(figures)"
	else
		echo "UNFINISHED $1 $2 (limits: $LIMIT s, $MEM MiB): $(grep '^Depth=' pan.out | tail -1)"
		[ "${3:-}" = MAY_STOP ] || bad=1
	fi
}

figures() {
	awk '/states, stored/ {s=$1} /depth reached/ {d=$0; sub(/.*depth reached /,"",d); sub(/,.*/,"",d)} /total actual memory/ {m=$1} /elapsed time/ {t=$4}
		END {print s " states, depth " d ", " m " MiB, " t " s"}' pan.out
}

# story: what the actions of a trail print
story() { grep -v '^spin\|MSC\|process.* created\|^ *[0-9]*:.*proc\|^#\|^		' ; }

# refute MODEL NAME BOUNDS: breadth first, so that the counterexample is the shortest
refute() {
	build "$1" "-D$2 $3" "-O0 -DBFS"
	timeout "$LIMIT" ./pan -E >pan.out 2>&1
	if [ -f "$1.pml.trail" ] && grep -q 'assertion violated' pan.out; then
		steps=$(grep -o 'at depth [0-9]*' pan.out | head -1 | grep -o '[0-9]*')
		{
			echo "$1.pml -D$2 $3: the shortest counterexample, at depth $steps"
			echo
			spin -t -T "-D$2" $3 "$1.pml" | story
		} >"$to/$1-$2.txt"
		echo "found      $1 $2: depth $steps"
	else
		echo "NOT FOUND  $1 $2 $3: $(grep '^Depth=' pan.out | tail -1)"
		bad=1
	fi
}

. "$here/checks.sh"
[ $bad = 0 ] || echo "model: FAILED"
exit $bad
