package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// In a recovery a static lock is renewed by who has trusted it without a break, and by nobody else; a renew that is not answered
// while the trust lasts ends with it.
func TestRenewInARecovery(t *testing.T) {
	dir := t.TempDir()
	d := brokertest.Start(t, brokertest.WithData(dir))
	c := connect(t, d)
	limited := &subjects.Request{Name: "static", Kind: subjects.Static, TTL: 50 * time.Second, Has: subjects.HasTTL}
	g, err := c.Acquire(within(t), limited)
	must(t, err)
	d = brokertest.Start(t, brokertest.WithData(crashed(t, dir)), func(s *conf.Settings) { s.MaxLease = time.Minute })
	c = connect(t, d)

	for wait := 300 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, err := c.Renew(ctx, "static", g.Key, nil, nil)
		cancel()
		var refusal *subjects.Refusal
		if errors.Is(err, client.ErrUnavailable) && errors.As(err, &refusal) && refusal.Why == subjects.WhyRecovery {
			break
		}
		if err == nil || wait > patience/4 { // else there may have been no answer in time
			t.Fatalf("a renew that does not say that the lock is trusted: %v", err)
		}
	}
	for range 2 {
		renewed, err := c.Renew(within(t), "static", g.Key, nil, nil, client.TrustedFor(30*time.Second))
		must(t, err)
		if renewed.Token != g.Token || renewed.TTL != 50*time.Second {
			t.Errorf("renewed as %+v", renewed)
		}
	}
	for _, left := range []time.Duration{0, -time.Second, 1} {
		if g, err := c.Renew(within(t), "static", g.Key, nil, nil, client.TrustedFor(left)); !errors.Is(err, client.ErrLost) || g != nil {
			t.Errorf("a renew by whose trust is over in %v: %+v, %v", left, g, err)
		}
	}
}

// An answer that does not come while the trust lasts does not count, whenever it comes.
func TestRenewEndsWithTheTrust(t *testing.T) {
	d := brokertest.Start(t)
	proxy := brokertest.NewProxy(t, d.URL())
	c := connectURL(t, proxy.URL())
	g, err := c.Acquire(within(t), &subjects.Request{Name: "static", Kind: subjects.Static})
	must(t, err)
	proxy.Stall(true)
	if _, err := c.Renew(within(t), "static", g.Key, nil, nil, client.TrustedFor(100*time.Millisecond)); !errors.Is(err, client.ErrLost) {
		t.Errorf("a renew that is not answered: %v", err)
	}
	proxy.Stall(false)
	_, err = c.Release(within(t), "static", g.Key, "")
	must(t, err)
}

// crashed is a copy of a data directory as the disk would be after a crash: the journal leaves that word when the disk failed it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	later := t.TempDir()
	must(t, os.CopyFS(later, os.DirFS(dir)))
	must(t, os.WriteFile(filepath.Join(later, "journal", "failed"), nil, 0o600))
	for _, name := range []string{"auth.json", "identifier"} {
		if err := os.Chmod(filepath.Join(later, name), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return later
}
