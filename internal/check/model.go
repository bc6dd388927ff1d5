package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/opencluster/oclocks/subjects"
)

// model is a simple lock: it has holders, and gives tokens that rise. Time is in it as far as the history tells it: a hold may end by
// itself once the time has come that its grant or renewal gives, and does so in the model when something else shows that it has.
type model struct {
	first  *image
	budget int // steps that the search may still take
	wild   bool
}

// image is the state of the simple lock. It is never changed.
type image struct {
	at      int64
	last    uint64   // the last token
	holders []holder // by token
	back    uint64   // tokens up to this one may be there again: a recovery has lost how they ended
}

// holder is a hold in the model. Without a token it is one that may be there: nobody was told.
type holder struct {
	token  uint64
	mode   subjects.Mode
	take   uint32
	mayEnd int64
	hold   *hold
}

func (m *model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			if m.first == nil {
				return &image{}
			}
			return m.first
		},
		Step: func(state, input, _ any) (bool, any) {
			if m.budget--; m.budget < 0 {
				return false, state
			}
			return m.step(state.(*image), input.(*step))
		},
		Equal: func(a, b any) bool { return a.(*image).equal(b.(*image)) },
		Hash:  func(state any) uint64 { return state.(*image).hash() },
	}
}

// step says whether the lock can do that now, and what it is then.
func (m *model) step(i *image, s *step) (bool, *image) {
	switch s.what {
	case unknown:
		return true, i.with(holder{mode: s.ask.mode, take: s.ask.take})
	case granted:
		return m.grant(i, s)
	case refused:
		return len(i.holders) > 0 || i.back > 0, i
	case released:
		at := i.find(s.token)
		return at >= 0 || s.token <= i.back, i.without(at)
	case dropped:
		return true, i.without(i.exactly(s.hold.token))
	case renewed:
		at := i.find(s.token)
		if at < 0 && s.token > i.back {
			return false, i
		}
		return true, i.without(at).with(holder{s.token, s.hold.ask.mode, s.hold.ask.take, s.mayEnd, s.hold})
	case absent:
		at := i.exactly(s.hold.token)
		return at < 0 || i.holders[at].gone(s.ret), i.without(at)
	case looked:
		return i.look(s)
	case nothing:
	}
	return true, i
}

func (m *model) grant(i *image, s *step) (bool, *image) {
	if s.token <= i.last && !m.wild {
		return false, i
	}
	mode := s.ask.mode
	sum := uint64(s.ask.take)
	next := &image{last: max(s.token, i.last), back: i.back, holders: make([]holder, 0, len(i.holders)+1)}
	for _, h := range i.holders {
		fits := h.mode == mode && mode != subjects.Exclusive
		gone := h.gone(s.ret)
		switch {
		case !fits && !gone:
			return false, i
		case !fits:
			continue
		case mode == subjects.Semaphore && !gone:
			sum += uint64(h.take)
		}
		next.holders = append(next.holders, h)
	}
	if mode == subjects.Semaphore && sum > uint64(s.ask.slots) {
		return false, i
	}
	next.holders = append(next.holders, holder{s.token, mode, s.ask.take, s.mayEnd, s.hold})
	next.sort()
	return true, next
}

// look compares the holders that somebody saw with those that are there.
func (i *image) look(s *step) (bool, *image) {
	next := &image{last: i.last, back: i.back}
	for _, token := range s.holders {
		at := i.find(token)
		if at < 0 && token <= i.back {
			continue
		}
		if at < 0 {
			return false, i
		}
		h := i.holders[at]
		if h.token == 0 {
			h.token = token
			i = i.without(at)
		}
		next.holders = append(next.holders, h)
	}
	for _, h := range i.holders {
		switch {
		case slices.Contains(s.holders, h.token) && h.token != 0:
		case h.token == 0:
			next.holders = append(next.holders, h) // it may come yet
		case !h.gone(s.ret):
			return false, i
		}
	}
	next.sort()
	return true, next
}

// gone says whether the hold may be over by a time.
func (h *holder) gone(by int64) bool {
	return h.token == 0 || h.mayEnd <= by || h.hold != nil && h.hold.loose <= by
}

// exactly finds the holder with that token, -1 if there is none.
func (i *image) exactly(token uint64) int {
	return slices.IndexFunc(i.holders, func(h holder) bool { return h.token == token })
}

// find finds the holder with that token, or one that could be it.
func (i *image) find(token uint64) int {
	if at := i.exactly(token); at >= 0 {
		return at
	}
	return i.exactly(0)
}

func (i *image) with(h holder) *image {
	at, _ := slices.BinarySearchFunc(i.holders, h, byToken)
	holders := make([]holder, len(i.holders)+1)
	copy(holders, i.holders[:at])
	holders[at] = h
	copy(holders[at+1:], i.holders[at:])
	return &image{last: i.last, back: i.back, holders: holders}
}

func (i *image) without(at int) *image {
	if at < 0 {
		return i
	}
	holders := make([]holder, len(i.holders)-1)
	copy(holders, i.holders[:at])
	copy(holders[at:], i.holders[at+1:])
	return &image{last: i.last, back: i.back, holders: holders}
}

func (i *image) sort() { slices.SortFunc(i.holders, byToken) }

// byToken is the order of holders. Those that are equal in it, of which nobody was told, are equal.
func byToken(a, b holder) int {
	return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.mode, b.mode), cmp.Compare(a.take, b.take))
}

func (i *image) equal(o *image) bool { return i.last == o.last && slices.Equal(i.holders, o.holders) }

func (i *image) hash() uint64 {
	sum := i.last*0x9e3779b97f4a7c15 + uint64(len(i.holders))
	for _, h := range i.holders {
		sum = (sum ^ h.token ^ uint64(h.mayEnd)) * 0xbf58476d1ce4e5b9
		sum ^= sum >> 29
	}
	return sum
}

// String is the state for people.
func (i *image) String() string {
	var holders []string
	for _, h := range i.holders {
		if h.token == 0 {
			holders = append(holders, "perhaps one "+h.mode.String()+" that nobody was told of")
		} else {
			holders = append(holders, fmt.Sprintf("%s with token %d", h.mode, h.token))
		}
	}
	if holders == nil {
		return "free"
	}
	return "held: " + strings.Join(holders, ", ")
}

// String is the step for people.
func (s *step) String() string {
	if s.what == looked {
		return fmt.Sprintf("seen between %s and %s: held with tokens %v", clock(s.call), clock(s.ret), s.holders)
	}
	answer := "not answered"
	if s.ret != Never {
		answer = "at " + clock(s.ret) + ": " + codeText(s.ask.code, s.ask.told)
	}
	return s.ask.String() + ", " + answer
}
