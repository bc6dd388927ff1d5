package control

import (
	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/conf/shared"
)

// machine is the shared configuration as the arbiter applies it; after each change it leaves the state for those who look
// at it. Its methods run on the arbiter's goroutine.
type machine struct {
	*shared.FSM
	changed func(change uint64, state *shared.State)
}

var _ arbiter.FSM = (*machine)(nil)

func (m *machine) Apply(change uint64, command []byte) (any, error) {
	result, err := m.FSM.Apply(change, command)
	if err == nil {
		m.changed(change, m.State())
	}
	return result, err
}

func (m *machine) Restore(change uint64, snapshot []byte) error {
	if err := m.FSM.Restore(change, snapshot); err != nil {
		return err
	}
	m.changed(change, m.State())
	return nil
}
