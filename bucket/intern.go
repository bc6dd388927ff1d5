package bucket

import "strings"

// intern keeps one copy of each text that many records share: the names of users and servers, and what holders call
// themselves. It gives it a number; 0 is no text. A text is forgotten with the last record that has it.
type intern struct {
	ids    map[string]uint32
	texts  slab[interned]
	forgot string // the last one: who comes again and again takes it up
}

type interned struct {
	text string
	refs int
}

// take gives the number of a text and counts one use of it.
func (n *intern) take(text string) uint32 {
	if text == "" {
		return 0
	}
	id := n.ids[text]
	if id == 0 {
		if n.ids == nil {
			n.ids, n.texts.bits = make(map[string]uint32), 4
		}
		var each *interned
		id, each = n.texts.take()
		each.text = n.own(text)
		n.ids[each.text] = id
	}
	n.texts.at(id).refs++
	return id
}

// own is a copy, since the text may be a part of a longer one.
func (n *intern) own(text string) string {
	if text == n.forgot {
		return n.forgot
	}
	return strings.Clone(text)
}

// release counts one use less.
func (n *intern) release(id uint32) {
	if id == 0 {
		return
	}
	each := n.texts.at(id)
	each.refs--
	if each.refs == 0 {
		delete(n.ids, each.text)
		n.forgot = each.text
		n.texts.release(id)
	}
}

// share gives the one copy of a text and counts one use of it.
func (n *intern) share(text string) string { return n.text(n.take(text)) }

// drop counts one use less of what share gave.
func (n *intern) drop(text string) { n.release(n.ids[text]) }

func (n *intern) text(id uint32) string {
	if id == 0 {
		return ""
	}
	return n.texts.at(id).text
}
