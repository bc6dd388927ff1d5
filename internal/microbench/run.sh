#!/bin/sh
# Runs the micro-benchmarks of the pure rooms, COUNT times each. With REV=commit, those of that commit run too, in turn with
# ours, so that both meet the same machine, and benchstat (the first argument) tells the differences.
# BENCH is a regular expression of what is run, TIME the -benchtime of each. make microbench is the way to call it.
set -eu

benchstat=$1
rooms="bucket bucket/chain bucket/replicated subjects arbiter/core arbiter/plan internal/machine internal/journal"
out=$PWD/bin/microbench
there=

rm -rf "$out"
mkdir -p "$out/ours" "$out/theirs"

leave() {
	if [ -n "$there" ]; then
		git worktree remove --force "$there" 2>/dev/null || rm -rf "$there"
		git worktree prune
	fi
}
trap leave EXIT
trap 'exit 130' INT TERM

# build TREE DIRECTORY: the test binaries of the rooms that the tree has
build() {
	for room in $rooms; do
		if [ -d "$1/$room" ]; then
			(cd "$1" && go test -c -o "$2/$(echo "$room" | tr / -).test" "./$room")
		fi
	done
}

# measure TREE DIRECTORY ROOM FILE: its benchmarks once, in the directory that its test data is in
measure() {
	binary=$2/$(echo "$3" | tr / -).test
	if [ -x "$binary" ]; then
		(cd "$1/$3" && "$binary" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchtime "${TIME:-1s}" -test.timeout 1h) >> "$4"
	fi
}

build "$PWD" "$out/ours"
if [ -n "${REV:-}" ]; then
	there=$(mktemp -d)
	git worktree add --quiet --detach --force "$there" "$REV"
	build "$there" "$out/theirs"
fi

i=0
while [ "$i" -lt "${COUNT:-10}" ]; do
	i=$((i + 1))
	for room in $rooms; do
		if [ -n "$there" ]; then
			measure "$there" "$out/theirs" "$room" "$out/theirs.txt"
		fi
		measure "$PWD" "$out/ours" "$room" "$out/ours.txt"
	done
	echo "microbench: round $i of ${COUNT:-10}" >&2
done

cd "$out"
if [ -n "$there" ]; then
	"$benchstat" theirs.txt ours.txt
else
	"$benchstat" ours.txt
fi
echo "microbench: what was measured is in bin/microbench/*.txt" >&2
