package bucket

// spares is memory of outcomes that were forgotten, for the next ones: who sends requests one after the other says with each that the
// outcome of the last one can be forgotten.
type spares struct {
	memory [8][]byte
	n      int
}

// outcomeSize is room for nearly every outcome, in bytes.
const outcomeSize = 64

// take gives an empty outcome with room.
func (s *spares) take() []byte {
	if s.n == 0 {
		return make([]byte, 0, outcomeSize)
	}
	s.n--
	b := s.memory[s.n]
	s.memory[s.n] = nil
	return b
}

// put takes the memory of an outcome that nobody has any more.
func (s *spares) put(outcome []byte) {
	if cap(outcome) == outcomeSize && s.n < len(s.memory) {
		s.memory[s.n] = outcome[:0]
		s.n++
	}
}
