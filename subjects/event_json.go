package subjects

// AppendJSON implements Body. What is empty is left out; the grant and the refusal look as they do in replies, the latter
// as error.
func (e *SessionEvent) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "subject", e.Subject)
	dst = appendText(dst, "type", e.Type)
	if e.Name != "" {
		dst = appendBytes(dst, "name", e.Name)
	}
	dst = optUint(dst, "token", e.Token)
	dst = optUint(dst, "ticket", e.Ticket)
	dst = optUint(dst, "place", uint64(e.Place))
	dst = optText(dst, "request", e.Request)
	dst = optText(dst, "why", e.Why)
	dst = optInt(dst, "queue", e.Queue)
	if e.Grant != nil {
		dst = e.Grant.AppendJSON(appendKey(dst, "grant"))
	}
	if e.Refusal != nil {
		dst = e.Refusal.append(appendKey(dst, "error"))
	}
	return append(dst, '}')
}

// DecodeJSON reads an event of a session.
func (e *SessionEvent) DecodeJSON(b []byte) error {
	*e = SessionEvent{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "subject":
			e.Subject = s.text()
		case "type":
			e.Type = s.text()
		case "name":
			e.Name = s.text()
		case "name64":
			e.Name = s.base64()
		case "token":
			e.Token = s.uint()
		case "ticket":
			e.Ticket = s.uint()
		case "place":
			e.Place = s.uint32()
		case "request":
			e.Request = s.text()
		case "why":
			e.Why = s.text()
		case "queue":
			e.Queue = s.int()
		case "grant":
			e.Grant = &Grant{}
			s.adopt(e.Grant.DecodeJSON(s.object()))
		case "error":
			e.Refusal = &Refusal{}
			s.adopt(e.Refusal.decode(s.object()))
		}
	}
	return s.end(e.Type != "", "a session's event")
}

// AppendJSON implements Body. What is empty is left out, but not the bucket.
func (e *LockEvent) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "subject", e.Subject)
	dst = appendText(dst, "type", e.Type)
	dst = appendBytes(dst, "name", e.Name)
	dst = optUint(dst, "token", e.Token)
	dst = optText(dst, "holder", e.Holder)
	dst = optText(dst, "user", e.User)
	dst = optText(dst, "outcome", e.Outcome)
	dst = optSpan(dst, "held", e.Held)
	dst = appendUint(dst, "bucket", uint64(e.Bucket))
	return append(dst, '}')
}

// DecodeJSON reads a lock event.
func (e *LockEvent) DecodeJSON(b []byte) error {
	*e = LockEvent{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "subject":
			e.Subject = s.text()
		case "type":
			e.Type = s.text()
		case "name":
			e.Name = s.text()
		case "name64":
			e.Name = s.base64()
		case "token":
			e.Token = s.uint()
		case "holder":
			e.Holder = s.text()
		case "user":
			e.User = s.text()
		case "outcome":
			e.Outcome = s.text()
		case "held":
			e.Held = s.span()
		case "bucket":
			e.Bucket = s.uint32()
		}
	}
	return s.end(e.Type != "" && e.Name != "", "a lock event")
}

// AppendJSON implements Body. What is empty is left out.
func (e *ServerEvent) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "subject", e.Subject)
	dst = appendText(dst, "type", e.Type)
	dst = optText(dst, "node", e.Node)
	dst = optText(dst, "name", e.Name)
	if len(e.URLs) > 0 {
		dst = appendTexts(dst, "urls", e.URLs)
	}
	dst = optText(dst, "status", e.Status)
	dst = optText(dst, "mode", e.Mode)
	return append(dst, '}')
}

// DecodeJSON reads an event of a server or of the cluster.
func (e *ServerEvent) DecodeJSON(b []byte) error {
	*e = ServerEvent{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "subject":
			e.Subject = s.text()
		case "type":
			e.Type = s.text()
		case "node":
			e.Node = s.text()
		case "name":
			e.Name = s.text()
		case "urls":
			e.URLs = s.texts()
		case "status":
			e.Status = s.text()
		case "mode":
			e.Mode = s.text()
		}
	}
	return s.end(e.Type != "", "a server's or the cluster's event")
}
