package replicated

import (
	"bytes"
	"testing"
)

// The payloads of a round stand in one array, which grows with what rounds have, and not with a single large image.
func TestPayloadsShareMemory(t *testing.T) {
	var out Output
	round := func(payloads, size int) {
		out.Reset()
		var all [][]byte
		for i := range payloads {
			buf := out.begin()
			for range size {
				buf = append(buf, byte(i))
			}
			all = append(all, out.end(buf))
		}
		for i, payload := range all {
			if !bytes.Equal(payload, bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("payload %d of %d with %d bytes was written over", i, payloads, size)
			}
		}
	}
	for _, c := range []struct{ payloads, size, arena int }{
		{1, 100, arenaLeast}, {3, 1 << 20, arenaLeast}, {1000, 100, 2 * arenaLeast}, {1, 5 << 20, 2 * arenaLeast}, {1000, 100, 2 * arenaLeast},
		{40_000, 100, arenaMost}, {100, 100_000, arenaMost},
	} {
		for range 10 {
			round(c.payloads, c.size)
		}
		if got := cap(out.arena); got != c.arena {
			t.Errorf("%d payloads of %d bytes leave %d, want %d", c.payloads, c.size, got, c.arena)
		}
	}
	small := func() {
		out.Reset()
		for range 64 {
			out.end(append(out.begin(), "a record of a change"...))
		}
	}
	if got := testing.AllocsPerRun(100, small); got > 0 {
		t.Errorf("%v allocations for a round of small records", got)
	}
}
