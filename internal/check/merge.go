package check

import (
	"errors"
	"fmt"
	"io"
)

// Merged is one history out of many recordings, in the order of time. Of events of the same time those that end something come
// first, so that nothing is found that the clock did not tell.
type Merged struct {
	readers []*Reader
	heads   []*Event
	begun   bool
	err     error
}

// Merge makes one history out of recordings that were written with the same clock.
func Merge(recordings ...io.Reader) *Merged {
	m := &Merged{heads: make([]*Event, len(recordings))}
	for _, r := range recordings {
		m.readers = append(m.readers, NewReader(r))
	}
	return m
}

// Next gives the next event of all, io.EOF after the last. An error names the recording, counted from 0.
func (m *Merged) Next() (*Event, error) {
	if !m.begun {
		m.begun = true
		for i := range m.readers {
			if m.err = m.read(i); m.err != nil {
				return nil, m.err
			}
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	first := -1
	for i, e := range m.heads {
		if e != nil && (first < 0 || e.before(m.heads[first])) {
			first = i
		}
	}
	if first < 0 {
		return nil, io.EOF
	}
	e := m.heads[first]
	m.err = m.read(first)
	return e, nil
}

func (m *Merged) read(i int) error {
	e, err := m.readers[i].Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("recording %d: %w", i, err)
	}
	m.heads[i] = e
	return nil
}

func (e *Event) before(o *Event) bool {
	if e.At != o.At {
		return e.At < o.At
	}
	return e.rank() < o.rank()
}

func (e *Event) rank() int {
	switch e.Kind {
	case Doubt, Withheld, Died, Disconnected, Disbelieve, Lost, SessionLost:
		return 0
	case Ask:
		return 1
	case Believe:
		return 3
	}
	return 2
}

// Read adds a history to the checker.
func (c *Checker) Read(m *Merged) error {
	for {
		e, err := m.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		c.Add(e)
	}
}
