package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/subjects"
)

// What encoding/json is given for the same texts.
type (
	plainAcquire struct {
		Name, Session, Wait, TTL string
		Request, Done            uint64
	}
	plainGrant struct {
		Granted                                            bool
		Name, Key, Mode, TTL, Lease, Node, Waited, Receipt string
		Token, Take, Bucket, Epoch, Ticket, Beat           uint64
		Durable                                            bool
	}
)

// measureCodec measures what JSON costs on the way of a request, beside encoding/json on the same texts.
func measureCodec(context.Context) ([]table, error) {
	grant := &subjects.Grant{
		Name: "orders/4711", Key: 0x0123456789abcdef, Token: 1 << 40, Take: 1, TTL: 30 * time.Second, Lease: 10 * time.Second,
		Bucket: 17, Epoch: 3, Node: "NB3K5WQX", Ticket: 123456, Waited: 12 * time.Millisecond, Beat: 99, Durable: true,
		Receipt: "q83vEjRWeJqrze8SNFZ4mqvN7xI0Vniaq83vEjRWeJo",
	}
	acquire, grantText := []byte(rig.AcquireText), grant.AppendJSON(nil)
	var plain plainGrant
	if err := json.Unmarshal(grantText, &plain); err != nil {
		return nil, fmt.Errorf("read a grant with encoding/json: %w", err)
	}
	var (
		req  subjects.Request
		back subjects.Grant
		buf  []byte
	)
	t := table{Title: "JSON", Columns: []string{"text", "ours", "encoding/json"}}
	for _, c := range []struct {
		name      string
		size      int
		ours, std func() error
	}{
		{"decode an acquire", len(acquire),
			func() error {
				if refusal := req.Decode(subjects.OpAcquire, acquire); refusal != nil {
					return refusal
				}
				return nil
			},
			func() error { return json.Unmarshal(acquire, new(plainAcquire)) }},
		{"encode a grant", len(grantText),
			func() error { buf = grant.AppendJSON(buf[:0]); return nil },
			func() error { _, err := json.Marshal(&plain); return err }},
		{"decode a grant", len(grantText),
			func() error { return back.DecodeJSON(grantText) },
			func() error { return json.Unmarshal(grantText, new(plainGrant)) }},
	} {
		ours, err := timeOf(c.ours)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		std, err := timeOf(c.std)
		if err != nil {
			return nil, fmt.Errorf("%s with encoding/json: %w", c.name, err)
		}
		t.add(c.name, bytes(float64(c.size)), nanos(ours), nanos(std))
	}
	return []table{t}, nil
}
