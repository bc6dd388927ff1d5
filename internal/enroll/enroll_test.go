package enroll

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/conf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// founder is a daemon that lets nodes in.
type founder struct {
	t        *testing.T
	dir      string
	auth     *conf.Auth
	identity *conf.Identity
	server   *natsd.Server
	nc       *nats.Conn
}

func found(t *testing.T) *founder {
	t.Helper()
	f := &founder{t: t, dir: t.TempDir()}
	id, err := conf.NodeID(f.dir)
	if err == nil {
		f.auth, err = conf.OpenAuth(f.dir)
	}
	if err == nil {
		err = f.auth.EnsureZone("orders")
	}
	if err == nil {
		f.identity, err = conf.CreateIdentity(f.dir, "shop", id)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.server = start(t, f.auth, f.identity, f.dir)
	if f.nc, err = f.server.ConnectNodes(); err != nil {
		t.Fatal(err)
	}
	return f
}

func start(t *testing.T, auth *conf.Auth, identity *conf.Identity, dir string) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(t.Context(), natsd.Config{
		ServerName: identity.Node(), Listen: "127.0.0.1:0", Auth: auth, Zones: []conf.Zone{{Name: "orders"}}, Logger: logger(t),
		Cluster: &natsd.Cluster{Name: identity.Authority().Cluster(), Listen: "127.0.0.1:0", Identity: identity, Data: dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (f *founder) serve() {
	f.t.Helper()
	stop, err := Serve(f.nc, Config{
		Auth: f.auth, Authority: f.identity.Authority(), Logger: logger(f.t),
		Routes: func() map[string][]string {
			return map[string][]string{f.identity.Node(): {f.server.RouteAddr().String()}}
		},
		Settings: func() (json.RawMessage, error) { return json.RawMessage(`{"acks":"all"}`), nil },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			f.t.Error(err)
		}
	})
	if err := f.nc.Flush(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *founder) token(urls ...string) string {
	f.t.Helper()
	if len(urls) == 0 {
		urls = []string{f.server.ClientURL()}
	}
	text, err := conf.NewJoinToken(f.auth, urls, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestANewNodeJoins(t *testing.T) {
	f := found(t)
	f.serve()
	dir := filepath.Join(t.TempDir(), "new")
	joined, err := Join(within(t), f.token("nats://127.0.0.1:1", f.server.ClientURL()), dir, "n2")
	if err != nil {
		t.Fatal(err)
	}
	if joined.Cluster != "shop" || string(joined.Settings) != `{"acks":"all"}` {
		t.Errorf("got %+v", joined)
	}
	// What a daemon does with the directory at its start.
	id, err1 := conf.NodeID(dir)
	auth, err2 := conf.OpenAuth(dir)
	identity, err3 := conf.OpenIdentity(dir, id)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if id != joined.Node || id == f.identity.Node() {
		t.Errorf("the node is %s", id)
	}
	s := start(t, auth, identity, dir)
	if err := s.Join(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := s.Routes(); len(got) != 1 || got[0] != f.identity.Node() {
		t.Errorf("connected with %v", got)
	}
	if _, err := Join(within(t), f.token(), dir, "n2"); !errors.Is(err, conf.ErrExists) {
		t.Errorf("again: %v", err)
	}
}

func TestATokenLetsOneNodeIn(t *testing.T) {
	f := found(t)
	f.serve()
	token := f.token()
	dir := t.TempDir()
	if _, err := Join(within(t), token, dir, "n2"); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(within(t), token, t.TempDir(), "n3"); !errors.Is(err, ErrUsed) {
		t.Errorf("another node: %v", err)
	}
	// The same node may have lost the answer.
	if err := os.RemoveAll(filepath.Join(dir, "tls")); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(within(t), token, dir, "n2"); err != nil {
		t.Errorf("the same node: %v", err)
	}
}

func TestWhatIsNoTokenOfThisCluster(t *testing.T) {
	f, other := found(t), found(t)
	f.serve()
	own, err := conf.ParseJoinToken(f.token())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := conf.ParseJoinToken(other.token())
	if err != nil {
		t.Fatal(err)
	}
	encode := func(key, jwt, seed string) string {
		text, err := json.Marshal(conf.JoinToken{URLs: own.URLs, Key: key, JWT: jwt, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return tokenText(text)
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"of another cluster":         {encode(foreign.Key, foreign.JWT, foreign.Seed), ErrRefused},
		"with another cluster's key": {encode(foreign.Key, own.JWT, own.Seed), ErrRefused},
		"another user's":             {encode(own.Key, own.JWT, foreign.Seed), conf.ErrToken},
		"cut":                        {f.token()[:100], conf.ErrToken},
		"empty":                      {"", conf.ErrToken},
	} {
		dir := t.TempDir()
		if _, err := Join(within(t), c.token, dir, "n2"); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		untouched(t, dir)
	}
}

func tokenText(content []byte) string {
	return "oclocks-join-1." + base64.RawURLEncoding.EncodeToString(content)
}

// untouched says that a data directory belongs to no cluster.
func untouched(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"auth.json", "tls/ca.pem", "tls/node.pem"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// The NATS server itself lets nobody in with an expired token, and neither does the daemon.
func TestAnExpiredToken(t *testing.T) {
	f := found(t)
	s := &server{cfg: Config{Auth: f.auth}, used: map[string]used{}}
	a, sig := asked(t, f, f.token(), f.identity.Node())
	if _, err := s.claim(a, sig, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.claim(a, sig, time.Now().Add(time.Hour+time.Second)); !errors.Is(err, conf.ErrExpired) {
		t.Errorf("got %v", err)
	}
	if len(s.used) != 1 {
		t.Errorf("%d tokens are remembered", len(s.used))
	}
	b, sigB := asked(t, f, f.token(), f.identity.Node())
	for id, u := range s.used {
		u.expires = time.Now()
		s.used[id] = u
	}
	if _, err := s.claim(b, sigB, time.Now()); err != nil || len(s.used) != 1 {
		t.Errorf("%v, and %d tokens are remembered: the expired one is to be forgotten", err, len(s.used))
	}
}

// asked is what a daemon reads of a request.
func asked(t *testing.T, f *founder, text, node string) (ask, signed) {
	t.Helper()
	token, err := conf.ParseJoinToken(text)
	if err != nil {
		t.Fatal(err)
	}
	own, err := nkeys.CreateCurveKeys()
	if err != nil {
		t.Fatal(err)
	}
	message, err := makeRequest(token, own, node, "n")
	if err != nil {
		t.Fatal(err)
	}
	a, s, err := openRequest(f.auth, message)
	if err != nil {
		t.Fatal(err)
	}
	return a, s
}

func TestNobodyIsThere(t *testing.T) {
	f := found(t) // which lets nobody in
	for name, urls := range map[string][]string{"nobody listens": {"nats://127.0.0.1:1"}, "nobody serves": nil} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		dir := t.TempDir()
		if _, err := Join(ctx, f.token(urls...), dir, "n2"); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
		untouched(t, dir)
	}
}

func TestADirectoryWithLocksOrKeysOfItsOwnStaysAsItIs(t *testing.T) {
	f := found(t)
	f.serve()
	journal := t.TempDir()
	if err := os.Mkdir(filepath.Join(journal, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(within(t), f.token(), journal, "n2"); !errors.Is(err, conf.ErrExists) {
		t.Errorf("journal: %v", err)
	}
	keys := t.TempDir()
	if _, err := conf.OpenAuth(keys); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(keys, "auth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(within(t), f.token(), keys, "n2"); !errors.Is(err, conf.ErrForeign) {
		t.Errorf("keys: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(keys, "auth.json"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the keys were changed: %v", err)
	}
}

// relay is somebody on the line between the new node and the daemon: ask and answer may alter what they say.
func relay(t *testing.T, to string, ask, answer func(string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pump := func(from, to net.Conn, change func(string) string) {
		defer from.Close()
		defer to.Close()
		buf := make([]byte, 1<<20)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if _, err := to.Write([]byte(change(string(buf[:n])))); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				return
			}
			go pump(a, b, ask)
			go pump(b, a, answer)
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestSomebodyOnTheLine(t *testing.T) {
	f := found(t)
	f.serve()
	var mu sync.Mutex
	var seen strings.Builder
	listen := func(s string) string {
		mu.Lock()
		defer mu.Unlock()
		seen.WriteString(s)
		return s
	}
	url := relay(t, f.server.Addr().String(), listen, listen)
	dir := t.TempDir()
	token, err := conf.ParseJoinToken(f.token(url))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(within(t), tokenText(text), dir, "n2"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	secrets := []string{token.Seed}
	for _, name := range []string{"auth.json", "tls/ca.pem"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, strings.Fields(string(content))...)
	}
	for _, s := range secrets {
		if s = strings.Trim(s, `",`); len(s) > 30 && strings.Contains(seen.String(), s) {
			t.Errorf("%d characters of a secret were on the line in the clear", len(s))
		}
	}

	// One character of the answer is another one.
	same := func(s string) string { return s }
	url = relay(t, f.server.Addr().String(), same, func(s string) string {
		before, after, found := strings.Cut(s, `"sealed":"`)
		if !found || len(after) < 200 {
			return s
		}
		c := "A"
		if after[100] == 'A' {
			c = "B"
		}
		return before + `"sealed":"` + after[:100] + c + after[101:]
	})
	dir = t.TempDir()
	if _, err := Join(within(t), f.token(url), dir, "n3"); !errors.Is(err, ErrForged) {
		t.Errorf("a changed answer: got %v", err)
	}
	untouched(t, dir)
}

// Somebody who has keys of his own answers in the cluster's place.
func TestAnotherClusterPosesAsThisOne(t *testing.T) {
	f, evil := found(t), found(t)
	token, err := conf.ParseJoinToken(f.token())
	if err != nil {
		t.Fatal(err)
	}
	own, err := nkeys.CreateCurveKeys()
	if err != nil {
		t.Fatal(err)
	}
	key, err := own.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	membership, err := evil.auth.Membership(evil.identity.Authority(), nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := pack(evil.auth, answer{Membership: membership}, key)
	if err != nil {
		t.Fatal(err)
	}
	var p part
	if err := json.Unmarshal(messages[0], &p); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(own, token.Key, p.Sealed); !errors.Is(err, ErrForged) {
		t.Errorf("got %v", err)
	}
}

// The token's user may do nothing in the account of the nodes but ask.
func TestATokensUserMayOnlyAsk(t *testing.T) {
	f := found(t)
	f.serve()
	token, err := conf.ParseJoinToken(f.token())
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 16)
	if _, err := f.nc.Subscribe(">", func(m *nats.Msg) {
		select {
		case heard <- m.Subject:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := f.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 16)
	creds := token.Credentials()
	nc, err := nats.Connect(f.server.ClientURL(), nats.UserJWT(func() (string, error) { return creds.JWT, nil }, creds.Pair.Sign),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	subjects := []string{"leader.register", "raft.7", "node.1.chain", "status", "enroll.x", "$SYS.REQ.SERVER.PING", "_INBOX.x", "$JS.API.INFO"}
	for _, subject := range subjects {
		if err := nc.Publish(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := waitRefusal(refused); err != nil {
			t.Errorf("publish %s: %v", subject, err)
		}
	}
	for _, subject := range []string{">", "enroll", "raft.*", "_INBOX.>", "_INBOX.*.x", "leader.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := waitRefusal(refused); err != nil {
			t.Errorf("subscribe %s: %v", subject, err)
		}
	}
	// A reply that is to go elsewhere gets none.
	if err := nc.PublishRequest(conf.EnrollSubject, "leader.register", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(conf.EnrollSubject, conf.InboxPrefix(token.ID())+".x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	// Both requests, and the answer to the second.
	for range 3 {
		select {
		case subject := <-heard:
			if subject != conf.EnrollSubject && subject != conf.InboxPrefix(token.ID())+".x" {
				t.Errorf("heard on %s", subject)
			}
		case <-time.After(patience):
			t.Fatal("the second request has no answer")
		}
	}
}

func waitRefusal(refused chan error) error {
	select {
	case err := <-refused:
		if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			return err
		}
		return nil
	case <-time.After(patience):
		return errors.New("it is allowed")
	}
}

func FuzzRequest(fz *testing.F) {
	auth, err := conf.NewAuth()
	if err != nil {
		fz.Fatal(err)
	}
	fz.Add([]byte(`{"v":1,"from":"X","sealed":"AAAA"}`))
	fz.Add([]byte(`{}`))
	fz.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := openRequest(auth, data); err == nil {
			t.Error("a request that nobody sealed is taken")
		}
	})
}

func TestPartsInAnyOrder(t *testing.T) {
	var p parts
	for _, m := range []part{{Part: 0, Of: 3, Sealed: []byte("x")}, {Part: 4, Of: 3, Sealed: []byte("x")}, {Part: 1, Of: maxParts + 1, Sealed: []byte("x")}, {Part: 1, Of: 1}} {
		if p.add(m) || p.shares != nil {
			t.Errorf("%+v is taken", m)
		}
	}
	for i, n := range []int{3, 1, 1, 2} {
		done := p.add(part{Part: n, Of: 3, Sealed: []byte{byte('0' + n)}})
		if done != (i == 3) {
			t.Errorf("part %d: done %t", n, done)
		}
	}
	if string(p.all()) != "123" {
		t.Errorf("got %q", p.all())
	}
}
