package subjects

import (
	"fmt"
	"strings"
	"testing"
)

// TestTextsStay: strings that were made stay as they were, whatever is made after them and whatever becomes of the bytes they were made of.
func TestTextsStay(t *testing.T) {
	var made Texts
	var none *Texts
	var got, want []string
	bytes := make([]byte, 0, 4096)
	for i := range 3000 {
		text := strings.Repeat("x", i%700) + fmt.Sprint(i)
		bytes = append(bytes[:0], text...)
		got, want = append(got, made.Of(bytes)), append(want, text)
		got, want = append(got, made.Join(text[:i%len(text)], text[i%len(text):])), append(want, text)
		got, want = append(got, none.Of(bytes), none.Join(text, "")), append(want, text, text)
	}
	clear(bytes[:cap(bytes)])
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("string %d is %q, not %q", i, got[i], want[i])
		}
	}
}

// TestTextsAreFew holds what short strings cost.
func TestTextsAreFew(t *testing.T) {
	var made Texts
	text := []byte("orders/4711")
	if got := testing.AllocsPerRun(10, func() {
		for range 100 {
			if made.Of(text) != made.Join("orders/", "4711") {
				t.Fatal("two texts are not the same")
			}
		}
	}); got > 2 {
		t.Errorf("200 short strings take %v allocations", got)
	}
}
