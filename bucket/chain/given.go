package chain

// given is the memory of the lists in the last Output, which a copy uses again: with few changes in each, making them anew was
// most of what a change cost. The changes in them are copies, since the log's own memory is written to when changes are forgotten.
type given struct {
	messages []Message // of the last Output, while the next one is collected
	stored   []Change  // Output.Append
	told     []Change  // Output.Deliver
	sent     []Change  // of all messages
	progress []Progress
}

// keepGiven is how many entries of a list are used again; what held more is given up, so that no bucket keeps what a busy time took.
const keepGiven = 64

// begin empties what the last Output had.
func (g *given) begin() {
	g.messages, g.stored, g.told, g.sent = emptied(g.messages), emptied(g.stored), emptied(g.told), emptied(g.sent)
	g.progress = emptied(g.progress)
}

// emptied is a list with nothing in it, and nothing behind it: what was there is to be collected.
func emptied[T any](list []T) []T {
	if cap(list) > keepGiven {
		return nil
	}
	clear(list)
	return list[:0]
}

// send copies changes that go into a message. A list that was given before stays where it is.
func (g *given) send(changes []Change) []Change {
	begin := len(g.sent)
	g.sent = append(g.sent, changes...)
	return g.sent[begin:len(g.sent):len(g.sent)]
}

// swap takes the messages of an Output and gives the list for those of the next one.
func (g *given) swap(messages []Message) (next []Message) {
	next, g.messages = g.messages, messages
	return next
}
