package shared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/conf"
)

// world is an FSM of which each change is checked.
type world struct {
	fsm    *FSM
	change uint64
	kept   []kept
}

// kept is a state with what it said when it was new.
type kept struct {
	state *State
	text  []byte
}

func newWorld() *world { return &world{fsm: New()} }

func stateText(s *State) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return text
}

// apply carries out a command and returns what it finds wrong with what came of it.
func (w *world) apply(command []byte) (Result, error) {
	before, digestBefore := w.fsm.Newest()
	w.kept = append(w.kept, kept{before, stateText(before)})
	w.change++
	got, err := w.fsm.Apply(w.change, command)
	if err != nil {
		return Result{}, err
	}
	res := got.(Result)
	after, digestAfter := w.fsm.Newest()
	switch {
	case res.Change != w.change || after.Change != w.change:
		return res, fmt.Errorf("change %d, the result has %d, the state %d", w.change, res.Change, after.Change)
	case digestAfter != digest(after):
		return res, fmt.Errorf("the digest is %x, counted anew %x", digestAfter, digest(after))
	case res.Err() != nil && digestBefore != digestAfter:
		return res, fmt.Errorf("refused with %q, and has changed something", res.Problem)
	}
	return res, w.verify(after)
}

// verify restores what there is, and looks whether older states are what they were.
func (w *world) verify(s *State) error {
	snap := w.fsm.Snapshot()
	other := New()
	if err := other.Restore(s.Change, snap); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if again := other.Snapshot(); !bytes.Equal(again, snap) {
		return fmt.Errorf("snapshot %s became %s", snap, again)
	}
	if other.Digest() != w.fsm.Digest() || other.State().Change != s.Change {
		return fmt.Errorf("restored with digest %x, change %d", other.Digest(), other.State().Change)
	}
	if len(w.kept) > 20 {
		w.kept = w.kept[1:]
	}
	for _, k := range w.kept {
		if now := stateText(k.state); !bytes.Equal(now, k.text) {
			return fmt.Errorf("a state of the past changed from %s to %s", k.text, now)
		}
	}
	return nil
}

func seed(t testing.TB, kind nkeys.PrefixByte, n byte) nkeys.KeyPair {
	t.Helper()
	pair, err := nkeys.FromRawSeed(kind, bytes.Repeat([]byte{n}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// testKeys are always the same for the same number.
func testKeys(t testing.TB, n byte) conf.ZoneKeys {
	t.Helper()
	text := func(n byte) string {
		s, err := seed(t, nkeys.PrefixByteAccount, n).Seed()
		if err != nil {
			t.Fatal(err)
		}
		return string(s)
	}
	k := conf.ZoneKeys{Account: text(n), Open: text(n + 1), Roles: map[conf.Role]string{}}
	for i, r := range conf.Roles() {
		k.Roles[r] = text(n + 2 + byte(i))
	}
	return k
}

func testUser(t testing.TB, zone string, n byte) conf.User {
	t.Helper()
	key, err := seed(t, nkeys.PrefixByteUser, n).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return conf.User{
		Key: key, Name: fmt.Sprintf("user%d", n), Zone: zone, Role: conf.RoleUser, Issued: time.Date(2026, 11, 21, 0, 0, int(n), 0, time.UTC),
	}
}

func testID(n int) string {
	id := []byte("aaaaaaaaaaaaaaaaaaaaaaaaaa")
	id[25] += byte(n % 26)
	id[24] += byte(n / 26)
	return string(id)
}

func testFound(t testing.TB, buckets uint32) Command {
	t.Helper()
	return Command{Found: &Found{
		Cluster: "c", Buckets: buckets, Zones: []conf.Zone{{Name: "default", Open: true}},
		Keys: map[string]conf.ZoneKeys{"default": testKeys(t, 10)},
	}}
}

func testRegister(n int) Command {
	return Command{Register: &Register{ID: testID(n), Raft: uint64(100 + n), Name: fmt.Sprintf("n%d", n)}}
}
