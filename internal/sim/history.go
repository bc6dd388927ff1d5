package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// This file tells the history of what clients did and saw to internal/check, which knows what was promised to them.

// note adds to the history.
func (k *checker) note(e *check.Event) {
	k.w.print.noted(e)
	k.history.Add(e)
	k.report()
}

// report fails the run with what the history has shown.
func (k *checker) report() {
	for _, v := range k.history.Violations()[k.reported:] {
		k.reported++
		k.w.fail("%v", v)
	}
}

// grip is a hold of a client without a session, as that client sees it.
type grip struct {
	grant *subjects.Grant
	until int64 // it believes in it until then
	back  bool  // it has given it back
	lost  bool  // it was told that it is over
}

// note adds to the history what the client did or saw now.
func (c *client) note(e *check.Event) {
	e.Zone, e.Client = c.zone, c.zone+"."+c.name
	c.w.note(e)
}

// asked tells of a request; about is the hold that it is about, nil for an acquire.
func (c *client) asked(a *ask, about *grip) {
	r := &a.req
	e := &check.Event{Kind: check.Ask, Op: r.Op, Request: a.id, Name: r.Name, Mode: r.Mode, Take: r.Take, Slots: r.Slots, Hold: subjects.Static,
		TTL: r.TTL, Grace: -1, Wait: r.Wait, Plain: r.RequestID == ""}
	if about != nil {
		e.Token = about.grant.Token
	}
	c.note(e)
}

// heard tells of an answer.
func (c *client) heard(a *ask, body subjects.Body) {
	e := &check.Event{Kind: check.Answer, Request: a.id, Code: 200}
	switch b := body.(type) {
	case *subjects.Grant:
		e.Token, e.Ticket, e.Key, e.TTL, e.Lease, e.Weak = b.Token, b.Ticket, b.Key, b.TTL, b.Lease, !b.Durable
	case *subjects.Released:
		e.Token = b.Token
	case *subjects.Refusal:
		e.Code, e.Reason, e.Why = b.Code, b.Reason, b.Why
	}
	c.note(e)
}

// abandon forgets all requests: nobody waits for their answers any more.
func (c *client) abandon() {
	for _, reply := range slices.Sorted(maps.Keys(c.asks)) {
		if a := c.asks[reply]; !a.answered && !a.gone {
			c.note(&check.Event{Kind: check.GiveUp, Request: a.id})
			a.gone = true
		}
	}
	clear(c.asks)
}

// trust begins or goes on with what the client believes.
func (c *client) trust(g *grip, until int64) {
	if until <= max(g.until, c.w.now) || g.back || g.lost {
		return
	}
	g.until = until
	if until == never {
		until = check.Never
	}
	c.note(&check.Event{Kind: check.Believe, Name: g.grant.Name, Token: g.grant.Token, Until: until})
}

// doubt tells that a bucket's history may have lost its end.
func (k *checker) doubt(b, buckets uint32) {
	k.lossy[b]++
	k.note(&check.Event{At: k.w.now, Kind: check.Doubt, Bucket: b, Buckets: buckets})
}

// lastLook tells what the tables have at the end, of all names.
func (w *world) lastLook() {
	for _, zone := range w.zones {
		records := map[string]*subjects.Record{}
		for _, name := range w.names() {
			records[name] = &subjects.Record{Name: name}
		}
		state := w.committed()
		for b := range state.Buckets() {
			table := w.byNumber(state.Views[b].Primary().Node).p.shardOf(b).cell(b).Table()
			req := &subjects.Request{Op: subjects.OpList, Limit: subjects.MaxListLimit}
			recs, _, _ := table.List(zone, req, bucket.Now{})
			for i := range recs {
				records[recs[i].Name] = &recs[i]
			}
		}
		for _, rec := range slices.SortedFunc(maps.Values(records), func(a, b *subjects.Record) int { return cmp.Compare(a.Name, b.Name) }) {
			e := &check.Event{At: w.now, Kind: check.Seen, Zone: zone, Client: zone + ".eye", Name: rec.Name, Part: rec.More > 0}
			for i := range rec.Holders {
				e.Holders = append(e.Holders, check.Holder{Token: rec.Holders[i].Token, Client: rec.Holders[i].Holder})
			}
			w.check.note(e)
		}
	}
	w.check.history.End(w.now, true)
	w.check.report()
}

// names are all that clients ask for.
func (w *world) names() []string {
	names := slices.Clone(lockNames)
	for i := range eternalNames {
		names = append(names, fmt.Sprintf("e%d", i))
	}
	return names
}
