package broker

import (
	"testing"

	"github.com/opencluster/oclocks/broker/direct"
	"github.com/opencluster/oclocks/subjects"
)

// TestALinkThatReplacesAnotherEndsItsPassage: the new link is up before the end of the old one is told of. What is pending in the old
// passage is decided about, and nothing more is taken there.
func TestALinkThatReplacesAnotherEndsItsPassage(t *testing.T) {
	l := &links{d: &Daemon{}}
	l.passages.Store(&map[uint64]*passage{})
	link := &direct.Link{}
	old := l.openPassage(link)
	waits := newTask(taskOne, nil) // nobody is told of this one
	waits.req.Op, waits.req.Enqueue = subjects.OpAcquire, true
	old.pending[1] = waits
	newer := l.openPassage(&direct.Link{})
	if !old.over || len(old.pending) != 0 || old.pass(&task{}) {
		t.Errorf("the old passage goes on: over %v, %d pending", old.over, len(old.pending))
	}
	l.downDirect(link)
	if l.passage(link.Node()) != newer || newer.over {
		t.Error("the end of the old link has ended the new passage")
	}
}
