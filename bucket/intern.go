package bucket

// intern keeps one copy of each user's name and gives it a number, so that millions of holds do not have a string each.
// A name is forgotten with the last hold that has it.
type intern struct {
	ids   map[string]uint32
	names []interned
	free  []uint32
}

type interned struct {
	name string
	refs int
}

// take gives the number of a name and counts one use of it.
func (n *intern) take(name string) uint32 {
	if id, ok := n.ids[name]; ok {
		n.names[id].refs++
		return id
	}
	if n.ids == nil {
		n.ids = make(map[string]uint32)
	}
	var id uint32
	if last := len(n.free) - 1; last >= 0 {
		id, n.free = n.free[last], n.free[:last]
		n.names[id] = interned{name, 1}
	} else {
		id = uint32(len(n.names))
		n.names = append(n.names, interned{name, 1})
	}
	n.ids[name] = id
	return id
}

// release counts one use less.
func (n *intern) release(id uint32) {
	each := &n.names[id]
	each.refs--
	if each.refs == 0 {
		delete(n.ids, each.name)
		each.name = ""
		n.free = append(n.free, id)
	}
}

func (n *intern) name(id uint32) string { return n.names[id].name }
