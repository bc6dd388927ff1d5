package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// contexts makes a folder of NATS contexts, and forgets the environment of whoever runs the test.
func contexts(t *testing.T, selected string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"NATS_URL", "NATS_CREDS", "NATS_CONTEXT"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", dir)
	if err := os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, "nats", path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if selected != "" {
		write("context.txt", selected+"\n")
	}
	for name, text := range files {
		write(filepath.Join("context", name+".json"), text)
	}
}

func TestAddressComesFrom(t *testing.T) {
	files := map[string]string{
		"home": `{"url":"nats://home:1, nats://home:2","token":"t","inbox_prefix":"_INBOX.me","unknown":[1]}`,
		"work": `{"url":"nats://work:1","user":"u","password":"p","tls_first":true}`,
	}
	creds := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(creds, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		url, selected string
		env           map[string]string
		opts          []Option
		want          []string
		check         func(*nats.Options) bool
	}{
		"nothing":           {want: []string{"nats://127.0.0.1:4222"}},
		"the argument":      {url: "nats://x:1", selected: "home", want: []string{"nats://x:1"}, check: func(o *nats.Options) bool { return o.Token == "" }},
		"NATS_URL":          {env: map[string]string{"NATS_URL": "nats://e:1"}, selected: "home", want: []string{"nats://e:1"}},
		"the selected":      {selected: "home", want: []string{"nats://home:1", "nats://home:2"}, check: func(o *nats.Options) bool { return o.Token == "t" && o.InboxPrefix == "_INBOX.me" }},
		"NATS_CONTEXT":      {env: map[string]string{"NATS_CONTEXT": "work"}, selected: "home", want: []string{"nats://work:1"}, check: func(o *nats.Options) bool { return o.User == "u" && o.Password == "p" && o.TLSHandshakeFirst }},
		"WithContext":       {env: map[string]string{"NATS_CONTEXT": "home"}, opts: []Option{WithContext("work")}, want: []string{"nats://work:1"}},
		"argument, context": {url: "nats://x:1", opts: []Option{WithContext("work")}, want: []string{"nats://x:1"}, check: func(o *nats.Options) bool { return o.User == "u" }},
		"NATS_CREDS":        {env: map[string]string{"NATS_CREDS": creds}, selected: "work", want: []string{"nats://work:1"}, check: func(o *nats.Options) bool { return o.User == "" && o.UserJWT != nil }},
		"options of NATS":   {opts: []Option{WithNATSOptions(nats.Token("own"))}, want: []string{"nats://127.0.0.1:4222"}, check: func(o *nats.Options) bool { return o.Token == "own" }},
		"what locks need":   {want: []string{"nats://127.0.0.1:4222"}, check: func(o *nats.Options) bool { return o.MaxReconnect == -1 && o.ReconnectBufSize == -1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			contexts(t, test.selected, files)
			for key, value := range test.env {
				t.Setenv(key, value)
			}
			o, err := natsOptions(context.Background(), test.url, newOptions(test.opts))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(o.Servers, test.want) {
				t.Errorf("servers %v, expected %v", o.Servers, test.want)
			}
			if test.check != nil && !test.check(o) {
				t.Errorf("options %+v", o)
			}
		})
	}
}

func TestContextsThatCannotBeRead(t *testing.T) {
	contexts(t, "", map[string]string{"broken": `{"url":`, "nkey": `{"nkey":"/does/not/exist"}`})
	for _, name := range []string{"missing", "broken", "nkey", "../context/broken"} {
		if _, err := natsOptions(context.Background(), "", newOptions([]Option{WithContext(name)})); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), "context") {
			t.Errorf("%s: %v does not say what was being read", name, err)
		}
	}
}

func TestUserOfAnInboxPrefix(t *testing.T) {
	for prefix, want := range map[string]string{
		"_INBOX": "", "": "", "_INBOX.UABC": "UABC", "_INBOX.UABC.": "UABC", "_INBOX.a.b": "", "other.UABC": "", "_INBOX.*": "",
	} {
		if got := prefixUser(prefix); got != want {
			t.Errorf("%q: %q, expected %q", prefix, got, want)
		}
	}
}

func TestForbiddenSubjectIsFound(t *testing.T) {
	err := nats.ErrPermissionViolation
	if _, ok := forbidden(err); ok {
		t.Error("found a subject in an error without one")
	}
	for text, want := range map[string]string{
		`Permissions Violation for Publish to "locks.b.3.force.U"`: "locks.b.3.force.U",
		`permissions violation for publish to "locks.acquire.u"`:   "locks.acquire.u",
		`Permissions Violation for Subscription to "locks.>"`:      "",
	} {
		got, _ := forbidden(violation{text})
		if got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// violation is a permission error as nats.go makes it.
type violation struct{ text string }

func (v violation) Error() string { return v.text }
func (v violation) Unwrap() error { return nats.ErrPermissionViolation }
