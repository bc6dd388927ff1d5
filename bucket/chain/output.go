package chain

// State is what a copy has to know again after a restart, beside its changes.
type State struct {
	Self   Member
	Epoch  uint64 // of the newest view that was installed
	Sealed uint64 // never acts again in a view of this epoch or an older one
}

// Start is what a copy begins with. The zero Start is a copy that has never been.
type Start struct {
	State     State
	Base      Point    // what Changes follow; the zero Point for a history from its beginning
	Changes   []Change // in the order of their numbers, as they were given in Output.Append
	Confirmed uint64   // the highest Output.Confirmed that was stored, at least Base.Seq
	Delivered uint64   // the table has the changes up to here, from Base.Seq to Confirmed
}

// Output is what a copy wants done. Carry it out from the top to the bottom; everything down to State has to be in the
// journal (write(2) has been called) before the rest is begun, and all of it before the next call of Ready, which writes over
// its lists and those in its messages.
type Output struct {
	Discard  bool      // throw away the table and what the journal has of this bucket
	Restore  *Snapshot // replace the table and what the journal has by this, all or nothing
	Truncate bool      // throw away the journal's changes after TruncateTo; the table has none of them
	// TruncateTo is a sequence number, for Truncate.
	TruncateTo uint64
	Append     []Change // add to the journal
	State      *State   // add to the journal, nil if it is as it was

	Messages []Message // send; each may be lost
	Deliver  []Change  // apply to the table, in this order
	Promoted uint64    // not 0: promote the table and propose its first change; it is the epoch
	Demoted  bool      // this copy was the primary and is not any more: tell those who wait to ask elsewhere

	// Acting says that this copy is the primary and may answer until the next call of Ready, if that comes before the lease
	// ends. Effects that wait for a change up to Confirmed, and only those, may be carried out, and only if Acting.
	Acting    bool
	Parting   bool   // this primary has sealed itself just now for a hand-over: as Acting, for this Output only
	Confirmed uint64 // store it with the next change; a secondary's is what it has been told
	Tail      uint64 // primary: the last member of the chain has everything up to here

	NeedSnapshot bool    // call Snapshot with the table's state, after Deliver
	Sealed       *Report // answer to Seal, or this copy has sealed itself: tell the control plane
	Propose      *View   // ask the control plane to commit this view if the epoch is still Propose.Epoch-1
	Behind       uint64  // not 0: a view of this epoch exists and has not been installed here: fetch it
	Alerts       []Alert // tell all nodes
	// Recovering is not 0 while this primary is in recovery: nothing may be granted until an Output says 0 again, which needs
	// a committed view. It is the time at which this copy asks for that view (nanoseconds, as in Ready).
	Recovering int64
}

// Snapshot is a whole state of the table.
type Snapshot struct {
	Point Point
	Data  []byte
}

// Alert is something that people should look into.
type Alert struct {
	Member Member // whom it is about
	Seq    uint64 // 0 if it is about no change
	Text   string
}
