package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
)

// kill -9 of the daemon: what was answered is there after the restart, tokens go on rising, and a client library that was
// holding and waiting goes on without noticing more than a pause.
func TestKilledDaemonLosesNothing(t *testing.T) {
	dir := t.TempDir()
	d, url := daemon(t, "--data", dir)
	port := url[strings.LastIndex(url, ":")+1:]
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	a, b := connect(t, url), connect(t, url)
	held, err := a.Mutex("m").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	static, err := a.Mutex("static", client.WithStatic(), client.WithTTL(time.Hour)).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := waitNext(t, b, "m")
	d.kill()
	_, url = daemon(t, "--data", dir, "--listen", "127.0.0.1:"+port)

	c := connect(t, url)
	defer func() { // while the daemon is there
		for _, conn := range []*client.Client{a, b, c} {
			disconnect(t, conn)
		}
	}()
	if _, err := c.Mutex("static").TryLock(ctx); !errors.Is(err, client.ErrHeld) {
		t.Errorf("a static lock after the restart: %v", err)
	}
	select {
	case at := <-n.granted:
		t.Fatalf("granted at %d while %s is held by another", at, held.Name())
	case <-held.Done():
		t.Fatalf("the holder lost its lock by the restart: %v", held.Err())
	default:
	}
	if err := held.Release(ctx); err != nil {
		t.Fatalf("release after the restart: %v", err)
	}
	n.when(t)
	if err := static.Release(ctx); err != nil {
		t.Fatalf("release of the static lock: %v", err)
	}
	again, err := c.Mutex("static").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() <= static.Token() {
		t.Errorf("token %d after %d", again.Token(), static.Token())
	}
}
