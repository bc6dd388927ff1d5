package broker

import (
	"github.com/opencluster/oclocks/subjects"
)

const (
	maxSheaf    = 32 << 10 // bytes; one that has so many goes at once
	maxSheaves  = 256      // when there are so many, all go at once
	keepSheaf   = 8 << 10  // bytes of memory that one keeps
	keptSheaves = 32       // of which there is memory
)

// pen is what a goroutine writes answers with.
type pen struct {
	text    []byte        // scratch for bodies
	kept    subjects.Kept // scratch, with its memory
	sheaves sheaves       // answers that are to be published
}

// answer answers a request, in a sheaf if its caller takes sheaves.
func (p *pen) answer(z *zone, op subjects.Op, reply string, body subjects.Body) {
	if !p.sheaves.put(z, reply, body) {
		p.text = z.answer(op, reply, body, p.text)
	} else if _, refused := body.(*subjects.Refusal); refused {
		z.stats.refused(op)
	}
}

// sheaves are answers whose callers take them in sheaves: those to one inbox are one message. A shard has some, and the pump of a zone;
// nothing is in them between two batches, or two messages.
type sheaves struct {
	all []sheaf
	at  map[sheafKey]int // in all
}

type sheafKey struct {
	zone    *zone
	subject string
}

// sheaf is what goes to one inbox.
type sheaf struct {
	zone    *zone
	subject string
	text    []byte
	n       int
	alone   string // reply subject of the first answer
}

// put takes an answer, if its caller takes sheaves.
func (s *sheaves) put(z *zone, to string, body subjects.Body) bool {
	subject, token, ok := subjects.CutSheaf(to)
	if !ok {
		return false
	}
	f := s.of(z, subject)
	if f.text, ok = subjects.AppendAnswer(f.text, token, body); !ok {
		return false
	}
	code := 0
	if refusal, refused := body.(*subjects.Refusal); refused {
		code = refusal.Code
	}
	z.d.metrics.answered(code)
	if f.n == 0 {
		f.alone = to
	}
	f.n++
	if len(f.text) >= maxSheaf {
		f.send()
	}
	return true
}

// of gives the sheaf for an inbox.
func (s *sheaves) of(z *zone, subject string) *sheaf {
	key := sheafKey{z, subject}
	i, there := s.at[key]
	if !there {
		if len(s.all) >= maxSheaves {
			s.send()
		}
		if s.at == nil {
			s.at = make(map[sheafKey]int)
		}
		i = len(s.all)
		s.at[key] = i
		if i == cap(s.all) {
			s.all = append(s.all, sheaf{})
		}
		s.all = s.all[:i+1]
		s.all[i] = sheaf{zone: z, subject: subject, text: s.all[i].text}
	}
	return &s.all[i]
}

// send publishes what is in it; a single answer by itself, but for a refusal, which would need headers then.
func (f *sheaf) send() {
	if f.n == 0 {
		return
	}
	if a, _, ok := subjects.NextAnswer(f.text); f.n == 1 && ok && !a.Refused {
		f.zone.publish(f.alone, a.Body)
	} else {
		f.zone.publish(f.subject, f.text)
	}
	f.n, f.text = 0, f.text[:0]
}

// send publishes all.
func (s *sheaves) send() {
	if len(s.all) == 0 {
		return
	}
	for i := range s.all {
		f := &s.all[i]
		f.send()
		if cap(f.text) > keepSheaf {
			f.text = nil
		}
		*f = sheaf{text: f.text}
	}
	if len(s.all) > keptSheaves {
		s.all, s.at = nil, nil
		return
	}
	clear(s.at)
	s.all = s.all[:0]
}
