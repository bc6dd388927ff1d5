package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

func TestClientURLs(t *testing.T) {
	nodes := []shared.Node{
		{Clients: []string{"10.1.2.3:4222"}, Routes: []string{"10.1.2.3:6222"}},
		{Clients: []string{"0.0.0.0:4222", "[::]:4222"}, Routes: []string{"10.1.2.4:6222"}}, // listens everywhere
		{Clients: []string{"0.0.0.0:4222"}},                                                 // and nobody knows where that is
		{Clients: []string{"10.1.2.5:4222"}, Arbiter: true},
		{Clients: []string{"10.1.2.3:4222", "nonsense"}},
	}
	if got, want := ClientURLs(nodes), []string{"nats://10.1.2.3:4222", "nats://10.1.2.4:4222"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var many []shared.Node
	for i := range 20 {
		many = append(many, shared.Node{Clients: []string{"10.1.2." + string(rune('a'+i)) + ":4222"}})
	}
	if got := ClientURLs(many); len(got) != maxURLs {
		t.Errorf("a token has %d addresses", len(got))
	}
}

func TestInvite(t *testing.T) {
	dir := t.TempDir()
	if _, err := Invite(dir, []string{"nats://10.1.2.3:4222"}, time.Hour); err == nil {
		t.Error("a token without keys")
	}
	if _, err := conf.OpenAuth(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Invite(dir, nil, time.Hour); !errors.Is(err, ErrNoAddress) {
		t.Errorf("no address: %v", err)
	}
	for url, local := range map[string]bool{"nats://127.0.0.1:4222": true, "nats://localhost:4222": true, "nats://[::1]:4222": true,
		"nats://10.1.2.3:4222": false, "nats://locks.example.org:4222": false} {
		i, err := Invite(dir, []string{url}, time.Hour)
		if err != nil || i.Local() != local || time.Until(i.Expires) > time.Hour {
			t.Errorf("%s: got %+v, %v", url, i, err)
		}
	}
}

func TestReadToken(t *testing.T) {
	dir := t.TempDir()
	if _, err := conf.OpenAuth(dir); err != nil {
		t.Fatal(err)
	}
	i, err := Invite(dir, []string{"nats://10.1.2.3:4222"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(i.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{i.Token, "@" + file, "-"} {
		if got, err := ReadToken(text, strings.NewReader(" "+i.Token+"\n")); err != nil || got != i.Token {
			t.Errorf("%.10s: got %.20s…, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "@" + file + "2", i.Token[:50]} {
		if _, err := ReadToken(text, strings.NewReader("")); err == nil {
			t.Errorf("%.20s is taken", text)
		}
	}
}

// TestFirstCanBeTriedAgain: what fails in the middle leaves nothing that is in the way.
func TestFirstCanBeTriedAgain(t *testing.T) {
	dir := t.TempDir()
	n := &Node{Data: filepath.Join(dir, "d"), Config: filepath.Join(dir, "nowhere", "oclocks.yaml"), Name: "n", Cluster: "c", Zone: "z",
		Listen: "127.0.0.1:0", ClusterListen: "127.0.0.1:0", HTTP: "off", User: "u", Out: filepath.Join(dir, "u.creds")}
	if _, err := First(n, nil); err == nil {
		t.Fatal("a configuration file in a directory that is not there")
	}
	if _, err := os.Stat(n.Out); err == nil {
		t.Error("credentials are left")
	}
	n.Config = filepath.Join(dir, "oclocks.yaml")
	if err := n.untouched(); err != nil {
		t.Error(err)
	}
	made, err := First(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conf.OpenIdentity(n.Data, made.ID); err != nil {
		t.Error(err)
	}
	if err := n.untouched(); !errors.Is(err, ErrThere) {
		t.Errorf("once more: %v", err)
	}
}
