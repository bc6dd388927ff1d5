package shared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// MaxCommand is the length of the longest command, in bytes.
const MaxCommand = 8 << 20

// Command is one change of the shared configuration. Exactly one field is set; the name of its field in JSON is the
// operation, which the JSON has once more as "op".
type Command struct {
	Found      *Found      `json:"found,omitempty"`
	Lead       *Lead       `json:"lead,omitempty"`
	Register   *Register   `json:"register,omitempty"`
	Remove     *Remove     `json:"remove,omitempty"`
	Node       *NodeEdit   `json:"node,omitempty"`
	Set        *Set        `json:"set,omitempty"`
	Lock       *Lock       `json:"lock,omitempty"`
	Unlock     *Lock       `json:"unlock,omitempty"`
	Zone       *ZonePut    `json:"zone,omitempty"`
	RemoveZone *ZoneName   `json:"remove_zone,omitempty"`
	Users      *Users      `json:"users,omitempty"`
	Views      *ViewChange `json:"views,omitempty"`
	Pin        *Pin        `json:"pin,omitempty"`
	Unpin      *Unpin      `json:"unpin,omitempty"`
	Double     *Double     `json:"double,omitempty"`
	Outlived   *Outlived   `json:"outlived,omitempty"`
	Raise      *Raise      `json:"raise,omitempty"`
}

// Found makes the cluster: its name, the number of buckets, which have no views yet, and everything that the founding
// node's own configuration has of what is shared from now on.
type Found struct {
	Cluster  string                   `json:"cluster"`
	Buckets  uint32                   `json:"buckets"`            // a power of two, 1 to conf.MaxBuckets
	Settings map[string]string        `json:"settings,omitempty"` // key and value as text; what is missing has its default
	Zones    []conf.Zone              `json:"zones"`
	Keys     map[string]conf.ZoneKeys `json:"keys,omitempty"` // of these zones, and of no others
}

// Lead tells that a leader has begun its term. From then on no view counts that a leader of an earlier term has planned,
// however late it comes.
type Lead struct {
	Term uint64 `json:"term"`
}

// Register tells that a node has begun. An unknown identifier gets a number and the life 1. A known one keeps its number;
// its life is one higher if it is fresh or comes with another raft ID. In the latter case the caller has made sure that the
// one with the raft ID before is not alive. With the same raft ID it is refused (ErrOldDisk) if the start that was registered
// last is none of Starts. The same start once more changes nothing and has the same outcome. A
// node that would take part with another lease than the cluster's is refused (ErrLease): as leader it would wait too shortly.
type Register struct {
	ID       string   `json:"id"`
	Raft     uint64   `json:"raft"`
	Fresh    bool     `json:"fresh,omitempty"` // it begins without a complete journal
	Name     string   `json:"name"`
	Location string   `json:"location,omitempty"`
	Priority int      `json:"priority,omitempty"` // 0 is DefaultPriority
	Routes   []string `json:"routes,omitempty"`   // HOST:PORT
	Clients  []string `json:"clients,omitempty"`  // HOST:PORT
	Arbiter  bool     `json:"arbiter,omitempty"`
	Level    uint32   `json:"level,omitempty"`  // that its program knows; 0: 1
	Start    uint64   `json:"start,omitempty"`  // random, of this process; 0: starts are not looked at
	Starts   []uint64 `json:"starts,omitempty"` // of earlier processes, as the node's disk knows them; at most MaxStarts

	Lease time.Duration `json:"lease,omitempty"` // by which it takes part, in nanoseconds; 0: it is not looked at
}

// Remove forgets a node, for ever: its raft ID never counts again. What it was primary of is taken over when its lease ends.
type Remove struct {
	Number uint64 `json:"number"`
}

// NodeEdit changes what people decide about a node. What is nil stays. A name, location or priority that was set here goes
// before the one in the node's own configuration.
type NodeEdit struct {
	Number   uint64  `json:"number"`
	Name     *string `json:"name,omitempty"`
	Location *string `json:"location,omitempty"`
	Priority *int    `json:"priority,omitempty"`
	Drain    *bool   `json:"drain,omitempty"`
}

// Set changes settings, all or none.
type Set struct {
	Settings map[string]string `json:"settings"`
}

// Lock locks or unlocks the configuration. Nodes register, and views change, as before.
type Lock struct{}

// ZonePut adds a zone or replaces its settings. A new zone comes with its keys, and one that is there may get others (then
// no credentials count any more but those in them).
type ZonePut struct {
	Zone conf.Zone      `json:"zone"`
	Keys *conf.ZoneKeys `json:"keys,omitempty"`
}

// ZoneName names a zone.
type ZoneName struct {
	Name string `json:"name"`
}

// Users changes the users of a zone: Drop names public keys that are forgotten, then Put adds users or replaces those with
// the same key.
type Users struct {
	Zone string      `json:"zone"`
	Drop []string    `json:"drop,omitempty"`
	Put  []conf.User `json:"put,omitempty"`
}

// ViewChange has next views. Each is committed if its epoch follows that of the bucket's view; the others change nothing.
// Result.Taken says which were. Views that the leader has planned come with its term; those that a primary asked for with 0.
type ViewChange struct {
	Term  uint64       `json:"term,omitempty"`
	Views []BucketView `json:"views"`
}

// Pin makes a node be the bucket's primary as long as it is alive, instead of what balance wants.
type Pin struct {
	Bucket uint32 `json:"bucket"`
	Number uint64 `json:"number"`
}

// Unpin ends a Pin.
type Unpin struct {
	Bucket uint32 `json:"bucket"`
}

// Double doubles the number of buckets, if it still is Buckets.
type Double struct {
	Buckets uint32 `json:"buckets"`
}

// Outlived tells that no lease is out any more that is longer than max_lease, which was made shorter by that change. Only the
// leader may tell, State.Outlive after it has seen the change; it is refused if max_lease was changed again.
type Outlived struct {
	Change uint64 `json:"change"`
}

// Raise raises the level by which commands are applied, to one that the programs of all registered nodes know. Only the leader does.
type Raise struct {
	Level uint32 `json:"level"`
}

// BucketView is a bucket and a view of it. In JSON it is one list of numbers: bucket, epoch, in-sync, recovery (0 or 1),
// then node and incarnation of each member.
type BucketView struct {
	Bucket uint32
	View   chain.View
}

// op is the one field that is set, "" if there are none or several.
func (c *Command) op() string {
	v := reflect.ValueOf(c).Elem()
	op := ""
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			continue
		}
		if op != "" {
			return ""
		}
		name := v.Type().Field(i).Tag.Get("json")
		op = name[:len(name)-len(",omitempty")]
	}
	return op
}

// Encode gives the command for Apply. It panics for one that has not exactly one field set, which is a programmer's error.
func (c Command) Encode() []byte {
	op := c.op()
	if op == "" {
		panic("shared: a command must have exactly one operation")
	}
	text, err := json.Marshal(wire{op, Written(c.needs()), c})
	if err != nil {
		panic("shared: encode a command: " + err.Error()) // no field of a command can fail
	}
	return text
}

// wire is a command as it is sent and stored.
type wire struct {
	Op    string `json:"op"`
	Needs uint32 `json:"needs,omitempty"` // level; 0: 1
	Command
}

// Decode reads a command strictly, as it is read when it is applied in a cluster of this level. Errors wrap ErrCommand or ErrLevel.
// Whoever does not know the command at all refuses it as well.
func Decode(text []byte, level uint32) (Command, error) {
	if len(text) > MaxCommand {
		return Command{}, fmt.Errorf("%w: %d bytes, at most %d", ErrCommand, len(text), MaxCommand)
	}
	var c wire
	if err := strict(text, &c); err != nil {
		return Command{}, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	if needs := max(c.Needs, c.needs()); needs > level {
		return Command{}, fmt.Errorf("%w: it is for level %d, and the cluster's is %d until every node runs a program that knows more", ErrLevel, needs, level)
	}
	switch op := c.op(); {
	case op == "":
		return Command{}, fmt.Errorf("%w: %q: expected exactly one operation", ErrCommand, c.Op)
	case op != c.Op:
		return Command{}, fmt.Errorf("%w: op is %q but there is %q", ErrCommand, c.Op, op)
	}
	return c.Command, nil
}

// strict decodes JSON without unknown keys and without anything behind it.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("there is something behind the end")
	}
	return nil
}

// MarshalJSON is a list of numbers.
func (b BucketView) MarshalJSON() ([]byte, error) {
	return json.Marshal(flatten(b))
}

func flatten(b BucketView) []uint64 {
	recovery := uint64(0)
	if b.View.Recovery {
		recovery = 1
	}
	list := append(make([]uint64, 0, 4+2*len(b.View.Chain)), uint64(b.Bucket), b.View.Epoch, uint64(b.View.InSync), recovery)
	for _, m := range b.View.Chain {
		list = append(list, m.Node, m.Inc)
	}
	return list
}

// UnmarshalJSON reads what MarshalJSON writes. Whether the view can be one is not its business.
func (b *BucketView) UnmarshalJSON(text []byte) error {
	var list []uint64
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("a view: %w", err)
	}
	if len(list) < 4 || len(list)%2 != 0 || len(list) > 4+2*chain.MaxChain {
		return fmt.Errorf("a view of %d numbers", len(list))
	}
	if list[0] > 1<<32-1 || list[2] > chain.MaxChain || list[3] > 1 {
		return fmt.Errorf("a view %d: a number is out of its range", list[:4])
	}
	*b = BucketView{Bucket: uint32(list[0]), View: chain.View{Epoch: list[1], InSync: int(list[2]), Recovery: list[3] == 1}}
	for i := 4; i < len(list); i += 2 {
		b.View.Chain = append(b.View.Chain, chain.Member{Node: list[i], Inc: list[i+1]})
	}
	return nil
}
