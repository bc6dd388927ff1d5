package chain

// Tail is the number of the newest change that every copy of the chain has, as far as the primary knows; 0 if this copy is
// not the primary.
func (r *Replica) Tail() uint64 {
	if r.lead == nil {
		return 0
	}
	return r.tail()
}
