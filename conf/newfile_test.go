package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oclocks.yaml")
	settings := []KeyValue{{"node", "123"}, {"listen", "127.0.0.1:4333"}, {"priority", "3"}}
	if err := NewFile(path, "# ours\n", settings, []Zone{{Name: "orders", LockEvents: true}}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(content), "# ours\n") {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := loadFile(path); err == nil || !strings.Contains(err.Error(), "--data") { // zones with users need a place for their keys
		t.Errorf("got %v", err)
	}
	if err := SetKey(path, "data", "/tmp/x"); err != nil {
		t.Fatal(err)
	}
	if s, err := loadFile(path); err != nil || s.Node != "123" || s.Priority != 3 || len(s.Zones) != 1 || !s.Zones[0].LockEvents {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := NewFile(path, "", nil, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	other := path + "2"
	for _, bad := range [][]KeyValue{{{"lisen", "x"}}, {{"listen", "nowhere"}}, {{"priority", "99"}}} {
		if err := NewFile(other, "", bad, nil); !errors.As(err, new(*KeyError)) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file with which no daemon starts was written")
	}
}

func TestRunning(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadRunning(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	want := Running{PID: 7, URL: "nats://127.0.0.1:4222", Node: "n", Clustered: true}
	if err := SaveRunning(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRunning(dir); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, runningFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRunning(dir); err == nil || !strings.Contains(err.Error(), runningFile) {
		t.Errorf("damaged: %v", err)
	}
	for range 2 {
		if err := RemoveRunning(dir); err != nil {
			t.Error(err)
		}
	}
}

// loadFile loads a file without flags and environment.
func loadFile(path string) (*Settings, error) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Set(ConfigFlag, path); err != nil {
		return nil, err
	}
	return Load(flags, nil)
}
