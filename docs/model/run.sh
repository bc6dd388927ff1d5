#!/bin/sh
# Checks the models with Spin: run.sh [all|check|mutants] [DIR for the outputs; docs/model by default]
# Each check has a limit of time (LIMIT, seconds, 90) and of memory (MEM, MiB, 4096). It installs nothing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
to=${2:-$here}
LIMIT=${LIMIT:-90}
MEM=${MEM:-4096}
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

# build MODEL SPINFLAGS CFLAGS [-On]: makes pan in a folder of its own and goes there
build() {
	rm -rf "$work/run" && mkdir "$work/run" && cd "$work/run" && cp "$here/$1.pml" . &&
		spin -a $2 "$1.pml" >spin.out 2>&1 && gcc -w ${4:--O2} -DSAFETY -DMEMLIM="$MEM" $3 -o pan pan.c 2>gcc.out ||
		{ cat spin.out gcc.out; echo "$1 $2: does not build"; exit 1; }
}

# verify MODEL BOUNDS: no violation, and says whether all of it was seen
verify() {
	build "$1" "$2" -DCOLLAPSE
	timeout "$LIMIT" ./pan -E -m100000 >pan.out 2>&1
	if [ -f "$1.pml.trail" ]; then
		echo "VIOLATED  $1 $2"
		spin -t -T $2 "$1.pml" | story
		bad=1
	elif ! grep -q 'max search depth too small\|MEMLIM\|interrupted\|not completed\|out of memory' pan.out && grep -q 'elapsed time' pan.out; then
		echo "exhausted $1 $2: $(figures)"
	else
		echo "UNFINISHED $1 $2 after ${LIMIT} s: $(grep '^Depth=' pan.out | tail -1)"
	fi
}

figures() {
	awk '/states, stored/ {s=$1} /depth reached/ {d=$0; sub(/.*depth reached /,"",d); sub(/,.*/,"",d)} /total actual memory/ {m=$1} /elapsed time/ {t=$4}
		END {print s " states, depth " d ", " m " MiB, " t " s"}' pan.out
}

# story: what the actions of a trail print
story() { grep -v '^spin\|MSC\|processes created\|^ *[0-9]*:.*proc\|^#\|^		' ; }

# refute MODEL MUTANT BOUNDS: breadth first, so that the counterexample is the shortest
refute() {
	build "$1" "-D$2 $3" "-DBFS -DCOLLAPSE" -O0
	timeout "$LIMIT" ./pan -E >pan.out 2>&1
	if [ -f "$1.pml.trail" ]; then
		{
			echo "$1.pml with -D$2 $3: $(grep -o 'assertion violated.*' pan.out | sed 's/ (at depth.*//')"
			echo
			spin -t -T "-D$2" $3 "$1.pml" | story
		} >"$to/$1-$2.txt"
		echo "found     $1 $2: $(figures)"
	elif [ "${4:-}" = MAY_PASS ]; then
		echo "not found $1 $2 (known: see README.md)"
	else
		echo "NOT FOUND $1 $2 $3: $(grep '^Depth=' pan.out | tail -1)"
		bad=1
	fi
}

. "$here/checks.sh"
exit $bad
