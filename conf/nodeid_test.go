package conf

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencluster/oclocks/subjects"
)

func TestNodeIDIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	first, err := NodeID(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != nodeIDLen || !subjects.ValidToken(first) {
		t.Errorf("got %q", first)
	}
	if again, err := NodeID(dir); again != first || err != nil {
		t.Errorf("got %q, %v, want %q", again, err, first)
	}
	info, err := os.Stat(filepath.Join(dir, "node-id"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	a, err1 := NodeID("")
	b, err2 := NodeID("")
	if a == b || err1 != nil || err2 != nil || len(a) != nodeIDLen {
		t.Errorf("without a directory: %q and %q", a, b)
	}
}

func TestNodeIDOfTwoDaemonsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var ids [8]string
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = NodeID(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got %v", ids)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestADamagedNodeIDIsRefused(t *testing.T) {
	for _, content := range []string{"", "short\n", strings.Repeat("*", nodeIDLen), strings.Repeat("a", nodeIDLen+1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "node-id"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := NodeID(dir); err == nil {
			t.Errorf("%q gives %q", content, id)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := NodeID(file); err == nil {
		t.Errorf("a file for a directory gives %q", id)
	}
}
