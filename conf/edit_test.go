package conf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const commented = `# The brokers of the shop.

# where clients come in
listen: 127.0.0.1:4222 # not 0.0.0.0
zones:
  # all of the orders
  - name: orders
    quota:
      holds: 5 # few
`

func edited(t *testing.T, before string, edit func(path string) error) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oclocks.yaml")
	if before != "" {
		if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	editErr := edit(path)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(after), editErr
}

func TestEditsKeepComments(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name, before, after string
		edit                func(path string) error
	}{
		{"change a key", commented, strings.Replace(commented, "127.0.0.1:4222", "127.0.0.1:5222", 1),
			func(p string) error { return SetKey(p, "listen", "127.0.0.1:5222") }},
		{"add a key", commented, commented + "buckets: 64\n",
			func(p string) error { return SetKey(p, "buckets", "64") }},
		{"add a zone", commented, commented + "  - name: more\n    unnamed: true\n    lock_events: true\n    quota:\n      sessions: 7\n",
			func(p string) error {
				return AddZone(p, Zone{Name: "more", Unnamed: &yes, LockEvents: true, Quota: Quota{Sessions: 7}})
			}},
		{"remove a zone", commented + "  - name: more\n", commented,
			func(p string) error { return RemoveZone(p, "more") }},
		{"a new file", "", "zones:\n  - name: play\n    role: admin\n    open: true\n",
			func(p string) error { return AddZone(p, Zone{Name: "play", Open: true, Role: RoleAdmin}) }},
		{"only comments", "# nothing yet", "# nothing yet\ncluster: c\n",
			func(p string) error { return SetKey(p, "cluster", "c") }},
		{"a value that looks like something else", "", "node: \"true\"\n",
			func(p string) error { return SetKey(p, "node", "true") }},
		{"an empty list", "zones: []\n", "zones:\n  - name: a\n",
			func(p string) error { return AddZone(p, Zone{Name: "a"}) }},
	} {
		got, err := edited(t, c.before, c.edit)
		if err != nil || got != c.after {
			t.Errorf("%s: %v\n%s", c.name, err, got)
		}
	}
}

func TestEditsThatAreRefusedChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name, before, want string
		is                 error
		edit               func(path string) error
	}{
		{"unknown key", commented, "did you mean listen?", nil, func(p string) error { return SetKey(p, "lisen", "x") }},
		{"the zones", commented, "there is no such key", nil, func(p string) error { return SetKey(p, "zones", "x") }},
		{"wrong value", commented, "not a duration", nil, func(p string) error { return SetKey(p, "max_lease", "x") }},
		{"value that is not valid", commented, "buckets", nil, func(p string) error { return SetKey(p, "buckets", "33") }},
		{"zone twice", commented, "orders", ErrExists, func(p string) error { return AddZone(p, Zone{Name: "orders"}) }},
		{"zone with a bad name", commented, "a.b", nil, func(p string) error { return AddZone(p, Zone{Name: "a.b"}) }},
		{"open to everybody", "listen: :4222\nzones: [{name: a}]\n", "--allow-open-zone", nil,
			func(p string) error { return AddZone(p, Zone{Name: "b", Open: true}) }},
		{"no such zone", commented, "nowhere", ErrNotFound, func(p string) error { return RemoveZone(p, "nowhere") }},
		{"no zones", "listen: 127.0.0.1:1\n", "a", ErrNotFound, func(p string) error { return RemoveZone(p, "a") }},
		{"the last zone", commented, "is the last one", nil, func(p string) error { return RemoveZone(p, "orders") }},
		{"a file that is not valid", "lisen: x\n", "did you mean listen?", nil, func(p string) error { return SetKey(p, "node", "n") }},
		{"a list", "- a\n", "not a mapping", nil, func(p string) error { return SetKey(p, "node", "n") }},
		{"no YAML", "a: b: c\n", "yaml", nil, func(p string) error { return SetKey(p, "node", "n") }},
	} {
		got, err := edited(t, c.before, c.edit)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if got != c.before {
			t.Errorf("%s: the file was changed:\n%s", c.name, got)
		}
	}
}

func TestEditsKeepTheMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oclocks.yaml")
	if err := os.WriteFile(path, []byte("node: a\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := SetKey(path, "node", "b"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := SetKey(filepath.Join(path, "x"), "node", "b"); err == nil {
		t.Error("edited below a file")
	}
}

func TestWriteNATSContext(t *testing.T) {
	dir := t.TempDir()
	c := NATSContext{Description: "alice", URL: "nats://127.0.0.1:4222", Creds: "/x/alice.creds", InboxPrefix: InboxPrefix("UALICE")}
	for _, environ := range [][]string{{"HOME=/nowhere", "XDG_CONFIG_HOME=" + dir + "/xdg"}, {"HOME=" + dir + "/home", "XDG_CONFIG_HOME="}} {
		path, err := WriteNATSContext("alice", c, environ)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join("nats", "context", "alice.json"); !strings.HasPrefix(path, dir) || !strings.HasSuffix(path, want) {
			t.Errorf("written to %s", path)
		}
		content, err := os.ReadFile(path)
		want := "{\n  \"description\": \"alice\",\n  \"url\": \"nats://127.0.0.1:4222\",\n  \"creds\": \"/x/alice.creds\",\n  \"inbox_prefix\": \"_INBOX.UALICE\"\n}\n"
		if string(content) != want || err != nil {
			t.Errorf("got %s, %v", content, err)
		}
		if _, err := WriteNATSContext("alice", c, environ); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second time: got %v", err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../a", `a\b`} {
		if _, err := WriteNATSContext(name, c, []string{"HOME=" + dir}); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	if _, err := WriteNATSContext("a", c, nil); err == nil {
		t.Error("written without a home")
	}
}
