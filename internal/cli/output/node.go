package output

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Ping is a node's answer and how long it took. Its JSON is the wire's with an `rtt`.
type Ping struct {
	Pong subjects.Pong
	RTT  time.Duration
}

// AppendJSON implements subjects.Body.
func (b *Ping) AppendJSON(dst []byte) []byte {
	dst = b.Pong.AppendJSON(dst)
	dst = append(dst[:len(dst)-1], `,"rtt":"`...)
	return append(append(dst, b.RTT.String()...), `"}`...)
}

func (p *Printer) ping(b *Ping) {
	if p.Quiet {
		return
	}
	// The node read its clock in the middle of the round trip, as far as anybody can tell, and tells whole milliseconds.
	ahead := time.UnixMilli(b.Pong.Now).Sub(p.Now().Add(-b.RTT / 2)).Round(10 * time.Millisecond)
	p.printf("%s answered in %s", Text(b.Pong.Node), b.RTT.Round(time.Microsecond))
	switch slack := b.RTT / 2; {
	case ahead > slack:
		p.printf(", its clock is %s ahead of ours", Span(ahead))
	case ahead < -slack:
		p.printf(", its clock is %s behind ours", Span(-ahead))
	}
	p.printf("\n")
}

func (p *Printer) info(i *subjects.Info) {
	if p.Quiet {
		p.printf("%s\n", Text(i.Mode))
		return
	}
	var f fields
	f.add("cluster", Text(i.Cluster))
	f.add("zone", Text(i.Zone))
	f.add("you", Text(i.User))
	f.add("node", Text(i.Node))
	f.add("version", fmt.Sprintf("%s, protocol %d", Text(i.Version), i.Protocol))
	f.add("mode", Text(i.Mode))
	f.add("quorum", fmt.Sprintf("%d of %d needed", i.Have, i.Need))
	f.add("buckets", strconv.FormatUint(uint64(i.Buckets), 10))
	f.add("map", fmt.Sprintf("change %d", i.Map.Change))
	f.add("max lease", limit(i.MaxLease))
	if len(i.Features) > 0 {
		f.add("features", texts(i.Features))
	}
	f.print(p)
}

func (p *Printer) servers(s *subjects.Servers) {
	var t table
	if !p.Quiet {
		t.add("NODE", "NAME", "STATUS", "LOCATION", "URLS")
	}
	for i := range s.Servers {
		v := &s.Servers[i]
		if p.Quiet {
			p.printf("%s\n", texts(v.URLs))
			continue
		}
		t.add(Text(v.Node), Text(v.Name), Text(v.Status), Text(v.Location), texts(v.URLs))
	}
	t.print(p, "")
}

func texts(list []string) string {
	shown := make([]string, len(list))
	for i, s := range list {
		shown[i] = Text(s)
	}
	return strings.Join(shown, " ")
}
