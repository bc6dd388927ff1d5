package subjects

// AppendJSON implements Body. mode is there while the lock is held, slots for a semaphore, more if holders were left out.
func (r *Record) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendBytes(dst, "name", r.Name)
	if r.Held {
		dst = appendWord(dst, "state", "held")
		dst = appendWord(dst, "mode", r.Mode.String())
	} else {
		dst = appendWord(dst, "state", "free")
	}
	dst = optUint(dst, "slots", uint64(r.Slots))
	dst = append(appendKey(dst, "holders"), '[')
	for i := range r.Holders {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Holders[i].append(dst)
	}
	dst = append(dst, ']')
	dst = append(appendKey(dst, "queue"), '[')
	for i := range r.Queue {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Queue[i].append(dst)
	}
	dst = append(dst, ']')
	dst = appendInt(dst, "waiting", r.Waiting)
	dst = optInt(dst, "more", r.More)
	return append(dst, '}')
}

// append writes one of holders. take is there if it is not 1.
func (h *Holder) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = optText(dst, "holder", h.Holder)
	dst = appendText(dst, "user", h.User)
	dst = optText(dst, "session", h.Session)
	dst = appendUint(dst, "token", h.Token)
	dst = appendTime(dst, "since", h.Since)
	dst = appendSpan(dst, "ttl", h.TTL)
	if h.Take != 1 {
		dst = appendUint(dst, "take", uint64(h.Take))
	}
	dst = optWord(dst, "kind", h.Kind.String())
	dst = optTrue(dst, "forced", h.Forced)
	if h.Data != nil {
		dst = appendRaw(dst, "data", h.Data)
	}
	return append(dst, '}')
}

// append writes one of queue. take is there if it is not 1.
func (w *Waiter) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendUint(dst, "ticket", w.Ticket)
	dst = optText(dst, "holder", w.Holder)
	dst = appendText(dst, "user", w.User)
	dst = optText(dst, "session", w.Session)
	dst = appendWord(dst, "mode", w.Mode.String())
	if w.Take != 1 {
		dst = appendUint(dst, "take", uint64(w.Take))
	}
	dst = appendTime(dst, "since", w.Since)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a query.
func (r *Record) DecodeJSON(b []byte) error {
	*r = Record{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "name":
			r.Name = s.text()
		case "name64":
			r.Name = s.base64()
		case "state":
			r.Held = s.text() == "held"
		case "mode":
			r.Mode = Mode(s.word(modeWords))
		case "slots":
			r.Slots = s.uint32()
		case "holders":
			s.each(func(object []byte) error {
				h := Holder{Take: 1}
				err := h.decode(object)
				r.Holders = append(r.Holders, h)
				return err
			})
		case "queue":
			s.each(func(object []byte) error {
				w := Waiter{Take: 1}
				err := w.decode(object)
				r.Queue = append(r.Queue, w)
				return err
			})
		case "waiting":
			r.Waiting = s.int()
		case "more":
			r.More = s.int()
		}
	}
	return s.end(r.Name != "", "a lock's record")
}

func (h *Holder) decode(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "holder":
			h.Holder = s.text()
		case "user":
			h.User = s.text()
		case "session":
			h.Session = s.text()
		case "token":
			h.Token = s.uint()
		case "since":
			h.Since = s.time()
		case "ttl":
			h.TTL = s.span()
		case "take":
			h.Take = s.uint32()
		case "kind":
			h.Kind = Kind(s.word(kindWords))
		case "forced":
			h.Forced = s.bool()
		case "data":
			h.Data = s.val.json()
		}
	}
	return s.err
}

func (w *Waiter) decode(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "ticket":
			w.Ticket = s.uint()
		case "holder":
			w.Holder = s.text()
		case "user":
			w.User = s.text()
		case "session":
			w.Session = s.text()
		case "mode":
			w.Mode = Mode(s.word(modeWords))
		case "take":
			w.Take = s.uint32()
		case "since":
			w.Since = s.time()
		}
	}
	return s.err
}

// AppendJSON implements Body. next is left out on the last page.
func (p *Page) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"locks":[`...)
	for i := range p.Locks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.Locks[i].AppendJSON(dst)
	}
	dst = append(dst, ']')
	dst = optText(dst, "next", p.Next)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a list.
func (p *Page) DecodeJSON(b []byte) error {
	*p = Page{}
	found := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "locks":
			found = true
			s.each(func(object []byte) error {
				r := Record{}
				err := r.DecodeJSON(object)
				p.Locks = append(p.Locks, r)
				return err
			})
		case "next":
			p.Next = s.text()
		}
	}
	return s.end(found, "a page of locks")
}
