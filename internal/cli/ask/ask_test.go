package ask

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func asker(typed string) (*Asker, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &Asker{In: bufio.NewReader(strings.NewReader(typed)), Out: out}, out
}

func TestText(t *testing.T) {
	short := func(s string) error {
		if len(s) > 3 {
			return errors.New("too long")
		}
		return nil
	}
	for _, c := range []struct{ typed, def, want, shown string }{
		{"abc\n", "d", "abc", "name [d]: "},
		{"\n", "d", "d", "name [d]: "},
		{" abc \n", "", "abc", "name: "},
		{"abc", "", "abc", "name: "},
		{"abcd\nabc\n", "", "abc", "name:   too long\nname: "},
	} {
		a, out := asker(c.typed)
		got, err := a.Text("name", c.def, short)
		if err != nil || got != c.want || out.String() != c.shown {
			t.Errorf("%q: got %q, %v, shown %q", c.typed, got, err, out)
		}
	}
	a, _ := asker("abcd\n")
	if _, err := a.Text("name", "x", short); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("the end of the input: %v", err)
	}
}

func TestYes(t *testing.T) {
	for typed, want := range map[string]bool{"\n": true, "n\n": false, "YES\n": true, "what\nno\n": false} {
		a, _ := asker(typed)
		if got, err := a.Yes("sure?", true); err != nil || got != want {
			t.Errorf("%q: got %t, %v", typed, got, err)
		}
	}
}

func TestNobodyIsAskedThroughAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if Terminal(r, w).Able() {
		t.Error("a pipe is no terminal")
	}
}
