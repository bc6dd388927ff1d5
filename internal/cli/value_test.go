package cli

import (
	"encoding/base64"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

func TestDurations(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0": 0, "10": 10 * time.Second, "0.5": 500 * time.Millisecond, "10s": 10 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond,
	} {
		var d Duration
		if err := d.Set(s); err != nil || d.Value != want || *d.Pointer() != want {
			t.Errorf("%q: %v, %v", s, d.Value, err)
		}
	}
	for _, s := range []string{"", "-1", "-1s", "soon", "1e99", "NaN", "Inf", "10x"} {
		var d Duration
		if err := d.Set(s); !errors.Is(err, ErrUsage) || d.Pointer() != nil {
			t.Errorf("%q: %v, %v", s, d.Value, err)
		}
	}
}

func TestKeysTokensNames(t *testing.T) {
	if key, err := ParseKey("0f00000000000001"); err != nil || key != 0x0f00000000000001 {
		t.Errorf("%x, %v", key, err)
	}
	for _, s := range []string{"", "1", "0f000000000000011", "+f00000000000001", "0x00000000000001"} {
		if key, err := ParseKey(s); !errors.Is(err, ErrUsage) {
			t.Errorf("key %q: %x, %v", s, key, err)
		}
	}
	for _, s := range []string{"", "0", "-1", "9007199254740992", "1.0"} {
		if token, err := ParseToken(s); !errors.Is(err, ErrUsage) {
			t.Errorf("token %q: %d, %v", s, token, err)
		}
	}
	for _, s := range []string{"/+8=", "/+8", "_-8", "_-8="} {
		if name, err := DecodeName(s); err != nil || name != "\xff\xef" {
			t.Errorf("%q: %q, %v", s, name, err)
		}
	}
	if _, err := DecodeName("!"); !errors.Is(err, ErrUsage) {
		t.Errorf("got %v", err)
	}
}

// TestShellQuoting lets a shell read what is quoted.
func TestShellQuoting(t *testing.T) {
	for _, s := range []string{"orders/4711", "a b", "it's", "$HOME", "`x`", "a\"b", "*", "größe", "a;b", "\\", "~"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shell(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q is quoted %s and read as %q, %v", s, shell(s), out, err)
		}
	}
	for _, s := range []string{"\xff", "a\nb", "\x1b", "-x", ""} {
		encoded, ok := strings.CutPrefix(shell(s), "--name64 ")
		if s == "-x" || s == "" {
			if ok {
				t.Errorf("%q: %s", s, shell(s))
			}
			continue
		}
		if name, err := base64.StdEncoding.DecodeString(encoded); !ok || err != nil || string(name) != s {
			t.Errorf("%q is %s", s, shell(s))
		}
	}
}

// A session that was kept some time ago is there until its lease is over, so that is how long it is worth to ask.
func TestPatienceWithASession(t *testing.T) {
	for _, c := range []struct{ timeout, lease, ago, want time.Duration }{
		{5 * time.Second, time.Minute, 30 * time.Second, 30 * time.Second},
		{5 * time.Second, 6 * time.Second, 3 * time.Second, 5 * time.Second},
		{5 * time.Second, time.Second, time.Hour, 5 * time.Second},
	} {
		if got := patience(c.timeout, c.lease, c.ago); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestWords(t *testing.T) {
	if d, err := Word("--drain", "soft", subjects.Hard, subjects.Soft); err != nil || d != subjects.Soft {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Word("--acks", "some", subjects.AcksDefault, subjects.AcksFirst, subjects.AcksAll); !errors.Is(err, ErrUsage) ||
		!strings.HasSuffix(err.Error(), "expected first, all") {
		t.Errorf("got %v", err)
	}
}
