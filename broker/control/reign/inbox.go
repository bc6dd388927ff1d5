package reign

// What an Inbox holds at the most: their senders repeat what is lost.
const (
	maxReports  = 1 << 17 // reports of buckets
	maxRequests = 1024
)

// Inbox collects what has happened until a Step takes it. Its zero value is empty. It is not safe for concurrent use.
type Inbox struct {
	changed  bool
	inputs   []Input
	reports  int
	requests int
}

// Put takes an input; it says false if there was no room for it. What the reign itself has caused always has room.
func (b *Inbox) Put(in Input) bool {
	switch in := in.(type) {
	case Changed:
		b.changed = true
		return true
	case Report:
		if b.reports+len(in.Reports) > maxReports {
			return false
		}
		b.reports += len(in.Reports)
	case Leave, Register:
		if b.requests >= maxRequests {
			return false
		}
		b.requests++
	}
	b.inputs = append(b.inputs, in)
	return true
}

// Take gives everything, in the order in which it came; that the facts may be others is told once, at first.
func (b *Inbox) Take() (inputs []Input) {
	if b.changed {
		inputs = append(inputs, Changed{})
	}
	inputs = append(inputs, b.inputs...)
	*b = Inbox{}
	return inputs
}
