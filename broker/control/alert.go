package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/internal/boottime"
)

const (
	alertAgain int64 = 1e9 // the same alert is not told again within this time
	alertsKept int   = 256
)

// alertKey is what makes two alerts the same.
type alertKey struct {
	bucket int64
	text   string
}

// Alert tells all nodes, this one too. bucket is -1 if it is about none. The same one is told once a second at the most. It
// never waits.
func (c *Control) Alert(bucket int64, text string) {
	if len(text) > MaxAlert {
		text = strings.ToValidUTF8(text[:MaxAlert], "")
	}
	key, now := alertKey{bucket, text}, boottime.Now()
	c.mu.Lock()
	at, known := c.alerts[key]
	again := known && now-at < alertAgain
	if !again {
		if len(c.alerts) >= alertsKept {
			clear(c.alerts)
		}
		c.alerts[key] = now
	}
	number := c.self.Number
	c.mu.Unlock()
	if !again {
		c.post.send(subjectAlert(number), encode(Alert{Node: number, Bucket: bucket, Text: text, Time: time.Now().UTC()}))
	}
}

func (c *Control) onAlert(m *nats.Msg) {
	alert, err := decodeMessage[Alert](m.Data)
	if err != nil || lastToken(m.Subject) != alert.Node {
		c.log.Warn("an alert that cannot be read", "subject", m.Subject, "error", err)
		return
	}
	if c.cfg.Alert != nil { // who logs and counts it
		c.cfg.Alert(alert)
		return
	}
	c.log.Error("alert", "node", alert.Node, "bucket", alert.Bucket, "text", alert.Text, "time", alert.Time)
}

// quarantine tells that a node's state has come apart from the leader's.
func (c *Control) quarantine(e arbiter.Quarantine) {
	name := ""
	if n := c.State().Node(e.Number); n != nil {
		name = n.Name
	}
	c.Alert(-1, fmt.Sprintf("node %d (%s) is in quarantine: at change %d its configuration differs from the leader's "+
		"(digest %x, the leader's is %x); stop it, remove its control.db and start it again. If this is told of most nodes, it is the leader's that is wrong", e.Number, name, e.Change, e.Have, e.Want))
}

// list is who is away, by number.
func (s *seen) list() []uint64 { return slices.Sorted(maps.Keys(s.away)) }
