package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/enrol"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
)

// What goes between nodes is JSON, except the arbiter's frames. A message that cannot be read is dropped and logged: nodes
// of one cluster speak the same version.
const (
	frameHeader = 9
	frameFormat = 1
)

// frame puts the sender's raft ID in front of what an arbiter sends.
func frame(from uint64, body []byte) []byte {
	b := make([]byte, frameHeader, frameHeader+len(body))
	b[0] = frameFormat
	binary.LittleEndian.PutUint64(b[1:], from)
	return append(b, body...)
}

// unframe reads what frame made. body is a part of b.
func unframe(b []byte) (from uint64, body []byte, err error) {
	switch {
	case len(b) < frameHeader:
		return 0, nil, fmt.Errorf("a frame of %d bytes", len(b))
	case b[0] != frameFormat:
		return 0, nil, fmt.Errorf("a frame of format %d", b[0])
	}
	return binary.LittleEndian.Uint64(b[1:]), b[frameHeader:], nil
}

// startQuestion and startAnswer are about a node's last start.
type (
	startQuestion = enrol.Question
	startAnswer   = enrol.Start
)

// admission is the leader's answer to a registration.
type admission = reign.Answer

// order goes from the leader to a node.
type order = desk.Order

// reports go from a node to the leader.
type reports struct {
	Node    uint64              `json:"node"`
	Reports []plan.BucketReport `json:"reports"`
}

// leaving tells the leader that a node wants to be primary of nothing.
type leaving struct {
	Number uint64 `json:"number"`
}

// leavingAnswer says how many other nodes could take over.
type leavingAnswer struct {
	Others int `json:"others"`
}

// hello goes to one node, farewell to all.
type (
	hello    = desk.Hello
	farewell = desk.Farewell
)

// changed is the leader's answer to a command.
type changed struct {
	shared.Result
	Unavailable string `json:"unavailable,omitempty"` // the outcome is not known
}

// encode makes JSON of a message. None of these types can fail.
func encode(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		panic("control: encode a message: " + err.Error())
	}
	return text
}

func decodeMessage[T any](data []byte) (T, error) {
	var m T
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("a message that cannot be read: %w", err)
	}
	return m, nil
}
