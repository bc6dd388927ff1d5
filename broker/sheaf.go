package broker

import (
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

const (
	maxSheaf   = 32 << 10 // bytes; one that has so many goes at once
	keepSheaf  = 8 << 10  // bytes of memory that one keeps
	keptSheafs = 32
)

// sheaves are the answers of a batch whose callers take them in sheaves: those to one inbox are one message. They are the shard's, and
// nothing is in them between two batches.
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
	from    int    // where its JSON begins; 0: it is a refusal, which has headers when it goes by itself
}

func newSheaves() sheaves { return sheaves{at: make(map[sheafKey]int)} }

// put takes an answer, if its caller takes sheaves.
func (s *sheaves) put(z *zone, e *bucket.Effect) bool {
	subject, token, ok := subjects.CutSheaf(e.To)
	if !ok {
		return false
	}
	f := s.of(z, subject)
	before := len(f.text)
	if f.text, ok = subjects.AppendAnswer(f.text, token, e.Body); !ok {
		return false
	}
	refusal, refused := e.Body.(*subjects.Refusal)
	code := 0
	if refused {
		code = refusal.Code
	}
	z.d.metrics.answered(code)
	if f.n == 0 {
		f.alone, f.from = e.To, 0
		if !refused {
			f.from = before + len(token) + len(" 200 ")
		}
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

// send publishes what is in it; a single answer by itself.
func (f *sheaf) send() {
	switch {
	case f.n == 0:
	case f.n == 1 && f.from > 0:
		f.zone.publish(f.alone, f.text[f.from:len(f.text)-1])
	default:
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
	if len(s.all) > keptSheafs {
		s.all = nil
	}
	clear(s.at)
	s.all = s.all[:0]
}
