package conf

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load is Load with arguments, an environment and the content of a file.
func load(t *testing.T, args, environ []string, file string) (*Settings, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "oclocks.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return Load(flags, environ)
}

func TestAFlagWinsOverTheEnvironmentOverTheFileOverTheDefault(t *testing.T) {
	file := "listen: 127.0.0.1:1\nhttp: 127.0.0.1:11\nmax_lease: 30s\n"
	environ := []string{"OCLOCKS_LISTEN=127.0.0.1:2", "OCLOCKS_HTTP=127.0.0.1:12", "OCLOCKS_NODE=", "PATH=/bin"}
	s, err := load(t, []string{"--listen", "127.0.0.1:3"}, environ, file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != "127.0.0.1:3" || s.HTTP != "127.0.0.1:12" || s.MaxLease != 30*time.Second || s.SessionLease != 10*time.Second || s.Node == "" {
		t.Errorf("got %+v", s)
	}
}

// Each key is a flag, an environment variable and a key of the file, and all three do the same.
func TestOneTableDrivesFlagsEnvironmentAndFile(t *testing.T) {
	values := map[string]string{
		"listen": "127.0.0.1:9", "http": "off", "data": "/d", "node": "n", "location": "eu/fra", "cluster": "c", "log_level": "debug",
		"log_format": "json", "buckets": "64", "max_lease": "2m0s", "session_lease": "7s", "sync": "always", "hide_servers": "true",
		"allow_open_zone_on_any_address": "true",
		"cluster_listen":                 "", "cluster_advertise": "", "direct_listen": "", "direct_advertise": "", "join": "", "found": "true", "join_token": "", "priority": "3", "min_quorum": "1",
		"node_lease": "2s", "acks": "all", "voters": "7",
	}
	if len(values) != len(Keys()) {
		t.Fatalf("the test knows %d keys of %v", len(values), Keys())
	}
	for _, key := range Keys() {
		value := values[key]
		if key == "min_quorum" || value == "" {
			continue // make no sense alone: see TestSettingsOfAClusteredDaemon
		}
		flag, env := "--"+strings.ReplaceAll(key, "_", "-"), "OCLOCKS_"+strings.ToUpper(key)
		byFlag, err1 := load(t, []string{flag + "=" + value}, nil, "")
		byEnv, err2 := load(t, nil, []string{env + "=" + value}, "")
		byFile, err3 := load(t, nil, nil, key+": "+value+"\n")
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got, err := byFlag.Get(key); got != value || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, value)
		}
		if !reflect.DeepEqual(byFlag, byEnv) || !reflect.DeepEqual(byEnv, byFile) {
			t.Errorf("%s: flag %+v, environment %+v, file %+v", key, byFlag, byEnv, byFile)
		}
	}
	s, err := load(t, []string{"--hide-servers"}, nil, "")
	if err != nil || !s.HideServers {
		t.Errorf("a flag without a value: %v", err)
	}
	if _, err := Default().Get("lisen"); err == nil || !strings.Contains(err.Error(), "did you mean listen?") {
		t.Errorf("got %v", err)
	}
}

func TestTheConfigurationFileIsNamedByFlagOrEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("cluster: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := load(t, nil, []string{"OCLOCKS_CONFIG=" + path}, "")
	if err != nil || s.Cluster != "here" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := load(t, nil, []string{"OCLOCKS_CONFIG=" + path + "x"}, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestZonesOfTheFile(t *testing.T) {
	s, err := load(t, nil, nil, `
data: /d
zones:
  - name: orders
    unnamed: true
    shared_inboxes: yes
    lock_events: on
    quota: {holds: 1, waiters: 2, sessions: 3, connections: 4}
  - name: play
    open: true
    role: viewer
    unnamed: false
    quota:
`)
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	want := []Zone{
		{Name: "orders", Unnamed: &yes, SharedInboxes: true, LockEvents: true, Quota: Quota{1, 2, 3, 4}},
		{Name: "play", Open: true, Role: RoleViewer, Unnamed: &no},
	}
	if !reflect.DeepEqual(s.Zones, want) || s.Development() {
		t.Errorf("got %+v, development %t", s.Zones, s.Development())
	}
	for _, file := range []string{"# nothing\n", "zones:\n", "zones: []\n", "---\n", "cluster: c\n"} {
		if s, err := load(t, nil, nil, file); err != nil || !s.Development() || len(s.Zones) != 1 {
			t.Errorf("%q: got %+v, %v", file, s, err)
		}
	}
}

// Every error names the place, the key, what is wrong and what to do.
func TestErrorsOfTheFile(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"cluster: a\nlisen: x\n", "oclocks.yaml:2: lisen: there is no such key: did you mean listen?"},
		{"max-lease: 1s\n", "oclocks.yaml:1: max-lease: there is no such key: did you mean max_lease?"},
		{"quux: x\n", "oclocks.yaml:1: quux: there is no such key: the keys are zones, listen,"},
		{"config: x\n", "oclocks.yaml:1: config: there is no such key"},
		{"listen: a\nnode: b\nlisten: c\n", "oclocks.yaml:3: listen: is there already in line 1: remove one"},
		{"listen:\n", "oclocks.yaml:1: listen: has no value"},
		{"listen: [a]\n", "oclocks.yaml:1: listen: is a list or mapping: expected one value (host:port)"},
		{"\n\nlisten: a\n", `oclocks.yaml:3: listen: "a" is not an address: expected HOST:PORT`},
		{"max_lease: 5\n", `oclocks.yaml:1: max_lease: "5" is not a duration: expected for example 500ms`},
		{"buckets: many\n", `oclocks.yaml:1: buckets: "many" is not a number`},
		{"buckets: 33\n", "oclocks.yaml:1: buckets: 33 is not a power of two"},
		{"hide_servers: perhaps\n", `oclocks.yaml:1: hide_servers: "perhaps" is neither true nor false`},
		{"- a\n", "oclocks.yaml:1: is not a mapping"},
		{"a: b: c\n", "oclocks.yaml: "},
		{"a: b\n---\nc: d\n", "oclocks.yaml: there is more than one YAML document"},
		{"zones: x\n", "oclocks.yaml:1: zones: is not a list"},
		{"zones:\n  - x\n", "oclocks.yaml:2: zones[0]: is not a mapping"},
		{"zones:\n  - name: a\n    opn: true\n", "oclocks.yaml:3: zones[0].opn: there is no such key: did you mean open?"},
		{"zones:\n  - name: a\n    qouta: {}\n", "oclocks.yaml:3: zones[0].qouta: there is no such key: did you mean quota?"},
		{"zones:\n  - name: a\n    quota: {hold: 1}\n", "oclocks.yaml:3: zones[0].quota.hold: there is no such key: did you mean holds?"},
		{"zones:\n  - name: a\n    quota: {holds: -1}\n", "oclocks.yaml:2: zones[a].quota.holds: out of range"},
		{"zones:\n  - name: a.b\n", `oclocks.yaml:2: zones[a.b].name: "a.b" has '.' in it`},
		{"zones:\n  - open: true\n", "oclocks.yaml:2: zones[].name: a name of 0 characters"},
		{"zones:\n  - name: a\n    open: true\n    role: root\n", `oclocks.yaml:4: zones[0].role: "root" is not a role`},
		{"zones:\n  - name: a\n    open: true\n  - name: b\n    open: true\n", "oclocks.yaml:1: zones[b].open: zone a is open too"},
		{"zones:\n  - name: a\n", "data: zone a has users, and there is no place for its keys: name a directory with --data"},
	} {
		_, err := load(t, nil, nil, c.file)
		var ke *KeyError
		if !errors.As(err, &ke) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.file, err, c.want)
		}
	}
}

func TestErrorsNameFlagAndEnvironment(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		want          string
	}{
		{[]string{"--listen", "x"}, nil, `--listen: listen: "x" is not an address`},
		{nil, []string{"OCLOCKS_LISTEN=x"}, `OCLOCKS_LISTEN: listen: "x" is not an address`},
		{nil, []string{"OCLOCKS_BUCKETS=x"}, `OCLOCKS_BUCKETS: buckets: "x" is not a number`},
		{[]string{"--max-lease", "x"}, nil, `invalid argument "x" for "--max-lease" flag: "x" is not a duration`},
		{[]string{"--listen", "0.0.0.0:1"}, nil, "--listen: listen: zone default is open"},
	} {
		if _, err := load(t, c.args, c.environ, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: got %v", c.args, c.environ, err)
		}
	}
}

func TestHelpNamesAllThree(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags)
	help := flags.FlagUsages()
	for _, want := range []string{"--max-lease duration", "OCLOCKS_MAX_LEASE", "max_lease", "(default 1m0s)", "--config string", "OCLOCKS_CONFIG"} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is not in the help:\n%s", want, help)
		}
	}
}

func TestAHugeFileIsRefused(t *testing.T) {
	if _, err := load(t, nil, nil, strings.Repeat("# x\n", maxFile/4+1)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\nzones:\n- name: a\n  open: true\n  quota: {holds: 1}\n"))
	f.Add([]byte("a: &x b\nc: *x\n"))
	f.Add([]byte("zones: [{name: a}]\nzones: []"))
	f.Add([]byte("<<: {listen: x}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s := Default()
		if err := s.read("f", content, map[string]string{}); err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}
