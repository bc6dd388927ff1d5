package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
)

// childEnv says which child this test binary is to be.
const childEnv = "OCLOCKS_E2E_CHILD"

// child is what the parent tells it.
type child struct {
	URL   string        `json:"url"`
	Name  string        `json:"name"`
	Lease time.Duration `json:"lease"`
	Grace time.Duration `json:"grace"` // below 0: the default
}

// hold starts a process that takes a lock and holds it until it is killed or the lock is lost. It prints
// {"event":"held","at":…} and, when it believes so no more, {"event":"lost","trusted":…}: boot times of the clock that all
// processes of the machine share.
func hold(t testing.TB, c child) *process {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	return start(t, cmd, (*exec.Cmd).StdoutPipe)
}

// childMain is the child's main: see hold.
func childMain(text string) (code int) {
	if err := holdLock(text); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func holdLock(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx := context.Background()
	conn, err := client.Connect(ctx, c.URL, client.WithLease(c.Lease))
	if err != nil {
		return err
	}
	var opts []client.LockOption
	if c.Grace >= 0 {
		opts = append(opts, client.WithGrace(c.Grace))
	}
	claim, err := conn.Mutex(c.Name, opts...).Lock(ctx)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]any{"event": "held", "at": boottime.Now()}); err != nil {
		return err
	}
	trusted := believe(claim)
	return out.Encode(map[string]any{"event": "lost", "trusted": trusted})
}

// believe looks at the claim again and again, as an application would before each use of the resource, and returns the
// end of the time for which the client last said that the lock may be trusted.
func believe(claim *client.Claim) (trusted int64) {
	for {
		before := boottime.Now()
		left := claim.Deadline()
		if s := claim.State(); s == client.Lost || s == client.Released {
			return trusted
		}
		// Deadline was asked after before, so this is at most what the client meant by it, give or take the call itself.
		trusted = max(trusted, before+int64(left))
		select {
		case <-claim.Done():
			return trusted
		case <-time.After(10 * time.Millisecond):
		}
	}
}
