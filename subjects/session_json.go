package subjects

// AppendJSON implements Body. Secret and Events are left out while they are empty.
func (o *Opened) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "session", o.Session)
	dst = optText(dst, "secret", o.Secret)
	dst = appendText(dst, "user", o.User)
	dst = appendSpan(dst, "ttl", o.TTL)
	dst = appendSpan(dst, "lease", o.Lease)
	dst = appendText(dst, "node", o.Node)
	dst = appendUint(dst, "incarnation", o.Incarnation)
	dst = appendText(dst, "disconnect", o.Disconnect)
	dst = optText(dst, "events", o.Events)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a session-open.
func (o *Opened) DecodeJSON(b []byte) error {
	*o = Opened{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "session":
			o.Session = s.text()
		case "secret":
			o.Secret = s.text()
		case "user":
			o.User = s.text()
		case "ttl":
			o.TTL = s.span()
		case "lease":
			o.Lease = s.span()
		case "node":
			o.Node = s.text()
		case "incarnation":
			o.Incarnation = s.uint()
		case "disconnect":
			o.Disconnect = s.text()
		case "events":
			o.Events = s.text()
		}
	}
	return s.end(o.Session != "", "the answer to a session-open")
}

// AppendJSON implements Body.
func (c *SessionClosed) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"closed":true`...)
	dst = appendInt(dst, "released", c.Released)
	return append(dst, '}')
}

// DecodeJSON reads the answer to a session-close.
func (c *SessionClosed) DecodeJSON(b []byte) error {
	*c = SessionClosed{}
	closed := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "closed":
			closed = s.bool()
		case "released":
			c.Released = s.int()
		}
	}
	return s.end(closed, "the answer to a session-close")
}

// AppendJSON implements Body.
func (k *Kept) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "node", k.Node)
	dst = appendUint(dst, "beat", k.Beat)
	dst = appendInt(dst, "count", k.Count)
	dst = appendHex(dst, "hash", k.Hash)
	dst = appendSpan(dst, "lease", k.Lease)
	if k.Buckets != nil {
		dst = append(dst, `,"buckets":[`...)
		for i := range k.Buckets {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = k.Buckets[i].append(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (b *KeptBucket) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendUint(dst, "bucket", uint64(b.Bucket))
	dst = appendUint(dst, "epoch", b.Epoch)
	dst = appendInt(dst, "count", b.Count)
	dst = appendHex(dst, "hash", b.Hash)
	return append(dst, '}')
}

func (b *KeptBucket) decode(object []byte) error {
	s := scanObject(object, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "bucket":
			b.Bucket = s.uint32()
		case "epoch":
			b.Epoch = s.uint()
		case "count":
			b.Count = s.int()
		case "hash":
			b.Hash = s.hex()
		}
	}
	return s.err
}

// DecodeJSON reads the answer to a keep-alive.
func (k *Kept) DecodeJSON(b []byte) error {
	*k = Kept{}
	found := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "node":
			k.Node = s.text()
		case "beat":
			k.Beat = s.uint()
		case "count":
			k.Count = s.int()
		case "hash":
			found = true
			k.Hash = s.hex()
		case "lease":
			k.Lease = s.span()
		case "buckets":
			k.Buckets = []KeptBucket{}
			s.each(func(object []byte) error {
				b := KeptBucket{}
				err := b.decode(object)
				k.Buckets = append(k.Buckets, b)
				return err
			})
		}
	}
	return s.end(found, "the answer to a keep-alive")
}
