package subjects

// Each message writes itself with AppendJSON, as a reply's or event's whole body, and is read back by DecodeJSON. That one
// overwrites the whole value, keeps no reference to the bytes, passes over fields that it does not know, and returns an
// error that wraps ErrBody if the bytes are not such a message.

// AppendJSON implements Body. Node and Receipt are left out while they are empty, as Beat is at 0.
func (g *Grant) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"granted":true`...)
	dst = appendBytes(dst, "name", g.Name)
	dst = appendHex(dst, "key", g.Key)
	dst = appendUint(dst, "token", g.Token)
	dst = appendWord(dst, "mode", g.Mode.String())
	dst = appendUint(dst, "take", uint64(g.Take))
	dst = appendSpan(dst, "ttl", g.TTL)
	dst = appendSpan(dst, "lease", g.Lease)
	dst = appendUint(dst, "bucket", uint64(g.Bucket))
	dst = appendUint(dst, "epoch", g.Epoch)
	dst = optText(dst, "node", g.Node)
	dst = appendUint(dst, "ticket", g.Ticket)
	dst = appendSpan(dst, "waited", g.Waited)
	dst = optUint(dst, "beat", g.Beat)
	dst = appendBool(dst, "durable", g.Durable)
	dst = optText(dst, "receipt", g.Receipt)
	return append(dst, '}')
}

// DecodeJSON reads a grant. The fields that are not on the wire stay empty.
func (g *Grant) DecodeJSON(b []byte) error {
	*g = Grant{}
	granted := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "granted":
			granted = s.bool()
		case "name":
			g.Name = s.text()
		case "name64":
			g.Name = s.base64()
		case "key":
			g.Key = s.hex()
		case "token":
			g.Token = s.uint()
		case "mode":
			g.Mode = Mode(s.word(modeWords))
		case "take":
			g.Take = s.uint32()
		case "ttl":
			g.TTL = s.span()
		case "lease":
			g.Lease = s.span()
		case "bucket":
			g.Bucket = s.uint32()
		case "epoch":
			g.Epoch = s.uint()
		case "node":
			g.Node = s.text()
		case "ticket":
			g.Ticket = s.uint()
		case "waited":
			g.Waited = s.span()
		case "beat":
			g.Beat = s.uint()
		case "durable":
			g.Durable = s.bool()
		case "receipt":
			g.Receipt = s.text()
		}
	}
	return s.end(granted, "a grant")
}

// AppendJSON implements Body.
func (r *Released) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"released":true`...)
	dst = appendUint(dst, "token", r.Token)
	dst = appendSpan(dst, "held", r.Held)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a release.
func (r *Released) DecodeJSON(b []byte) error {
	*r = Released{}
	released := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "released":
			released = s.bool()
		case "token":
			r.Token = s.uint()
		case "held":
			r.Held = s.span()
		}
	}
	return s.end(released, "the answer to a release")
}

// AppendJSON implements Body. Node is left out while it is empty.
func (q *Queued) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"queued":true`...)
	dst = appendBytes(dst, "name", q.Name)
	dst = appendUint(dst, "ticket", q.Ticket)
	dst = appendUint(dst, "place", uint64(q.Place))
	dst = appendSpan(dst, "lease", q.Lease)
	dst = appendUint(dst, "bucket", uint64(q.Bucket))
	dst = optText(dst, "node", q.Node)
	return append(dst, '}')
}

// DecodeJSON reads the answer to an acquire with enqueue.
func (q *Queued) DecodeJSON(b []byte) error {
	*q = Queued{}
	queued := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "queued":
			queued = s.bool()
		case "name":
			q.Name = s.text()
		case "name64":
			q.Name = s.base64()
		case "ticket":
			q.Ticket = s.uint()
		case "place":
			q.Place = s.uint32()
		case "lease":
			q.Lease = s.span()
		case "bucket":
			q.Bucket = s.uint32()
		case "node":
			q.Node = s.text()
		}
	}
	return s.end(queued, "a place in a queue")
}

// AppendJSON implements Body.
func (c *Cancelled) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"cancelled":true`...)
	dst = appendText(dst, "request", c.Request)
	dst = appendText(dst, "was", c.Was)
	dst = optUint(dst, "token", c.Token)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a cancel.
func (c *Cancelled) DecodeJSON(b []byte) error {
	*c = Cancelled{}
	cancelled := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "cancelled":
			cancelled = s.bool()
		case "request":
			c.Request = s.text()
		case "was":
			c.Was = s.text()
		case "token":
			c.Token = s.uint()
		}
	}
	return s.end(cancelled, "the answer to a cancel")
}

// AppendJSON implements Body. Ends is there only if the hold is not over yet.
func (f *Forced) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"forced":true`...)
	dst = appendUint(dst, "token", f.Token)
	dst = appendBool(dst, "ended", f.Ended)
	if !f.Ended {
		dst = appendSpan(dst, "ends", f.Ends)
	}
	return append(dst, '}')
}

// DecodeJSON reads the answer to a force.
func (f *Forced) DecodeJSON(b []byte) error {
	*f = Forced{}
	forced := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "forced":
			forced = s.bool()
		case "token":
			f.Token = s.uint()
		case "ended":
			f.Ended = s.bool()
		case "ends":
			f.Ends = s.span()
		}
	}
	return s.end(forced, "the answer to a force")
}

// AppendJSON implements Body.
func (c *Checked) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendBool(dst, "current", c.Current)
	dst = appendUint(dst, "newest", c.Newest)
	dst = appendUint(dst, "oldest", c.Oldest)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a check.
func (c *Checked) DecodeJSON(b []byte) error {
	*c = Checked{}
	found := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "current":
			found = true
			c.Current = s.bool()
		case "newest":
			c.Newest = s.uint()
		case "oldest":
			c.Oldest = s.uint()
		}
	}
	return s.end(found, "the answer to a check")
}
