package broker

import (
	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// perform carries out what the cells want done, once the journal has its part of it.
func (s *shard) perform() {
	s.publish()
	s.d.links.send(s.out.Messages, s.out.Later)
	for _, mark := range s.out.Marks {
		switch m := mark.Mark.(type) {
		case *share:
			m.confirmed(mark.Lost, &s.pen)
		case *task:
			s.confirmed(m, mark.Lost)
		case func(lost bool):
			m(mark.Lost)
		}
	}
	for _, of := range s.asked {
		report(of, &s.pen)
	}
	s.sheaves.send()
	for _, turn := range s.out.Turns {
		s.d.turn(turn)
		if turn.Primary {
			s.closeAgain(turn.Bucket)
		}
	}
	for i := range s.out.Forks {
		s.fork(&s.out.Forks[i])
	}
	for _, touched := range s.out.Touched {
		s.recount(touched)
	}
	for i, p := range s.passages {
		p.flush()
		s.passages[i] = nil
	}
	s.passages = s.passages[:0]
	s.d.tellControl(&s.out)
}

// publish carries out the effects that are confirmed.
func (s *shard) publish() {
	var z *zone
	for i := range s.out.Released {
		released := &s.out.Released[i]
		e := &released.Effect
		if z == nil || z.name != e.Zone {
			if z = s.d.zone(e.Zone); z == nil {
				continue // the zone was removed; nobody is there to hear
			}
		}
		switch e.Kind {
		case bucket.Reply:
			if e.To == edge.ShareReply {
				continue
			}
			s.complete(e)
			s.reply(z, released.Bucket, e)
		case bucket.NotifyOwner:
			s.sheaves.send() // what the event may be about comes first
			s.notifyOwner(z, e)
		case bucket.NotifyZone:
			s.notifyZone(z, e)
		}
	}
	s.sheaves.send()
}

// reply answers a request, by the node that has passed it on if one has.
func (s *shard) reply(z *zone, number uint32, e *bucket.Effect) {
	if len(s.passed) > 0 {
		if t := s.unfollow(asker{e.Zone, e.To, number}); t != nil {
			s.text = t.answer(subjects.OpNone, e.Body, s.text)
			s.flushed(t.via)
			return
		}
	}
	if !s.sheaves.put(z, e.To, e.Body) {
		s.text = z.answer(subjects.OpNone, e.To, e.Body, s.text)
	}
}

// recount takes in what a zone has in a bucket now; a change that is not about one zone may be about any.
func (s *shard) recount(touched replicated.Touched) {
	c := s.cell(touched.Bucket)
	if touched.Zone != "" {
		if z := s.d.zone(touched.Zone); z != nil {
			c.count(z)
		}
		return
	}
	for _, z := range *s.d.zones.Load() { // order: each is counted by itself
		c.count(z)
	}
}

// complete fills in what only the daemon knows.
func (s *shard) complete(e *bucket.Effect) {
	switch body := e.Body.(type) {
	case *subjects.Grant:
		s.completeGrant(e.Zone, body)
	case *subjects.Queued:
		body.Node = s.d.node
	}
}

func (s *shard) completeGrant(zone string, g *subjects.Grant) {
	s.sealer.Complete(zone, s.d.node, s.d.maxLease(), g)
}

func (s *shard) notifyOwner(z *zone, e *bucket.Effect) {
	event, ok := e.Body.(*subjects.SessionEvent)
	if !ok || !subjects.ValidToken(e.User) || !subjects.ValidToken(e.SessionID) {
		return
	}
	if event.Grant != nil {
		s.completeGrant(e.Zone, event.Grant)
	}
	event.Subject = subjects.SessionEventSubject(e.User, e.SessionID)
	s.text = event.AppendJSON(s.text[:0])
	z.publish(event.Subject, s.text)
}

func (s *shard) notifyZone(z *zone, e *bucket.Effect) {
	event, ok := e.Body.(*subjects.LockEvent)
	if !ok {
		return
	}
	event.Subject = subjects.LockEventSubject(event.Type, event.Bucket)
	s.text = event.AppendJSON(s.text[:0])
	z.publish(event.Subject, s.text)
}

// answer publishes a reply or a refusal and returns the scratch it was written in.
func (z *zone) answer(op subjects.Op, reply string, body subjects.Body, scratch []byte) []byte {
	code, text, scratch := z.write(op, body, scratch)
	z.send(reply, code, text, scratch)
	return scratch
}

// publish sends from the broker into the zone. What cannot be sent (the connection to the embedded server is being made
// again) is dropped and counted: the client repeats its request and gets the same answer.
func (z *zone) publish(subject string, body []byte) {
	if err := z.conn.Publish(subject, body); err != nil {
		z.unsent(err)
	}
}

func (z *zone) unsent(err error) {
	z.d.metrics.unsent.Inc()
	z.d.log.Debug("an answer could not be sent", "zone", z.name, "error", err)
}
