package output

import (
	"strconv"

	"github.com/opencluster/oclocks/subjects"
)

// grant prints what a script needs first: quiet is the key and the token.
func (p *Printer) grant(g *subjects.Grant) {
	if p.Quiet {
		p.printf("%s %d\n", Key(g.Key), g.Token)
		return
	}
	var f fields
	f.add("name", Text(g.Name))
	f.add("mode", mode(g.Mode, g.Take))
	f.add("key", Key(g.Key))
	f.addNumber("token", g.Token)
	f.add("limit", limit(g.TTL))
	f.add("lease", limit(g.Lease))
	f.add("waited", Span(g.Waited))
	if g.Node != "" {
		f.add("node", Text(g.Node))
	}
	if !g.Durable {
		f.add("durable", "no: a crash of its machine may lose it, a restart too without --data")
	}
	f.print(p)
}

func mode(m subjects.Mode, take uint32) string {
	if m == subjects.Semaphore && take > 1 {
		return m.String() + ", " + count(int(take), "slot")
	}
	return m.String()
}

func (p *Printer) queued(q *subjects.Queued) {
	if p.Quiet {
		p.printf("%d\n", q.Ticket)
		return
	}
	p.printf("waiting for %s: ticket %d, place %d; the grant comes as an event of the session\n", Text(q.Name), q.Ticket, q.Place)
}

func (p *Printer) released(r *subjects.Released) {
	if !p.Quiet {
		p.printf("released token %d after %s\n", r.Token, Span(r.Held))
	}
}

func (p *Printer) cancelled(c *subjects.Cancelled) {
	if p.Quiet {
		return
	}
	p.printf("request %s was %s", Text(c.Request), Text(c.Was))
	if c.Token != 0 {
		p.printf(", and token %d is released", c.Token)
	}
	p.printf("\n")
}

func (p *Printer) forced(f *subjects.Forced) {
	switch {
	case p.Quiet:
	case f.Ended:
		p.printf("token %d is over\n", f.Token)
	default:
		p.printf("token %d cannot be renewed any more; it is over in %s at the latest\n", f.Token, Span(f.Ends))
	}
}

func (p *Printer) checked(c *subjects.Checked) {
	if p.Quiet {
		return
	}
	verdict := "over: refuse what comes with it"
	if c.Current {
		verdict = "current"
	}
	var f fields
	f.add("token", verdict)
	f.addNumber("newest", c.Newest)
	f.add("oldest", strconv.FormatUint(c.Oldest, 10)+" is the lowest that is still valid")
	f.print(p)
}

func (p *Printer) opened(o *subjects.Opened) {
	if p.Quiet {
		p.printf("%s %s\n", o.Session, o.Secret)
		return
	}
	var f fields
	f.add("session", Text(o.Session))
	f.add("secret", Text(o.Secret))
	f.add("user", Text(o.User))
	f.add("lease", limit(o.Lease))
	f.addNumber("incarnation", o.Incarnation)
	f.add("disconnect", disconnect(o.Disconnect))
	f.add("events", Text(o.Events))
	f.add("node", Text(o.Node))
	f.print(p)
}

func disconnect(by string) string {
	switch by {
	case "event":
		return "noticed when the connection closes"
	case "ttl":
		return "noticed when the lease is over"
	}
	return Text(by)
}

func (p *Printer) closed(c *subjects.SessionClosed) {
	if !p.Quiet {
		p.printf("session closed, %s released\n", count(c.Released, "lock"))
	}
}
