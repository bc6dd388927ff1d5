package core

import "testing"

// BenchmarkCommit is what a single voter does for one command of 200 bytes: Propose, Ready, Advance.
func BenchmarkCommit(b *testing.B) {
	w := newWorld(1, testConfig(), 1)
	node := w.machines[0].node
	command := make([]byte, 200)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := node.Propose(uint64(i)+1, command, Condition{}); err != nil {
			b.Fatal(err)
		}
		applied := 0
		for node.HasReady() {
			out := node.Ready()
			applied += len(out.Apply)
			if out.Snapshot {
				if err := node.Snapshot(nil); err != nil {
					b.Fatal(err)
				}
			}
			node.Advance(0)
		}
		if applied != 1 || node.Err() != nil {
			b.Fatalf("%d commands applied, error %v", applied, node.Err())
		}
	}
}

// BenchmarkSecond is a second of five nodes that nobody asks anything: leases, heartbeats and all, with their network.
func BenchmarkSecond(b *testing.B) {
	w := newWorld(1, testConfig(), 5)
	w.grow(3, 2)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.run(second)
	}
	for _, wrong := range w.wrong {
		b.Error(wrong)
	}
}
