package subjects

// AppendJSON implements Body. The map's primary is left out while it is nil: the cluster hides its servers.
func (i *Info) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendInt(dst, "protocol", i.Protocol)
	dst = appendTexts(dst, "features", i.Features)
	dst = appendText(dst, "version", i.Version)
	dst = appendText(dst, "cluster", i.Cluster)
	dst = appendText(dst, "zone", i.Zone)
	dst = appendText(dst, "user", i.User)
	dst = appendText(dst, "node", i.Node)
	dst = appendUint(dst, "buckets", uint64(i.Buckets))
	dst = i.Map.append(appendKey(dst, "map"))
	dst = appendText(dst, "mode", i.Mode)
	dst = append(appendKey(dst, "quorum"), '{')
	dst = appendInt(dst, "have", i.Have)
	dst = appendInt(dst, "need", i.Need)
	dst = append(dst, '}')
	dst = appendSpan(dst, "max_lease", i.MaxLease)
	return append(dst, '}')
}

// DecodeJSON reads the answer to info.
func (i *Info) DecodeJSON(b []byte) error {
	*i = Info{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "protocol":
			i.Protocol = s.int()
		case "features":
			i.Features = s.texts()
		case "version":
			i.Version = s.text()
		case "cluster":
			i.Cluster = s.text()
		case "zone":
			i.Zone = s.text()
		case "user":
			i.User = s.text()
		case "node":
			i.Node = s.text()
		case "buckets":
			i.Buckets = s.uint32()
		case "map":
			s.adopt(i.Map.decode(s.object()))
		case "mode":
			i.Mode = s.text()
		case "quorum":
			s.adopt(i.decodeQuorum(s.object()))
		case "max_lease":
			i.MaxLease = s.span()
		}
	}
	return s.end(i.Protocol > 0, "the answer to info")
}

func (i *Info) decodeQuorum(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "have":
			i.Have = s.int()
		case "need":
			i.Need = s.int()
		}
	}
	return s.err
}

func (m *Map) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendUint(dst, "change", m.Change)
	if m.Primary != nil {
		dst = appendTexts(dst, "primary", m.Primary)
	}
	return append(dst, '}')
}

func (m *Map) decode(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "change":
			m.Change = s.uint()
		case "primary":
			m.Primary = s.texts()
		}
	}
	return s.err
}

// AppendJSON implements Body.
func (l *Servers) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"servers":[`...)
	for i := range l.Servers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l.Servers[i].append(dst)
	}
	return append(dst, ']', '}')
}

// DecodeJSON reads the answer to servers.
func (l *Servers) DecodeJSON(b []byte) error {
	*l = Servers{}
	found := false
	s := scanObject(b, replyDepth)
	for s.next() {
		if string(s.key) != "servers" {
			continue
		}
		found = true
		s.each(func(object []byte) error {
			v := Server{}
			err := v.decode(object)
			l.Servers = append(l.Servers, v)
			return err
		})
	}
	return s.end(found, "the answer to servers")
}

func (v *Server) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "node", v.Node)
	dst = appendText(dst, "name", v.Name)
	dst = appendTexts(dst, "urls", v.URLs)
	dst = appendText(dst, "location", v.Location)
	dst = appendText(dst, "status", v.Status)
	return append(dst, '}')
}

func (v *Server) decode(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "node":
			v.Node = s.text()
		case "name":
			v.Name = s.text()
		case "urls":
			v.URLs = s.texts()
		case "location":
			v.Location = s.text()
		case "status":
			v.Status = s.text()
		}
	}
	return s.err
}

// AppendJSON implements Body.
func (p *Pong) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendText(dst, "node", p.Node)
	dst = appendTime(dst, "now", p.Now)
	return append(dst, '}')
}

// DecodeJSON reads the answer to ping.
func (p *Pong) DecodeJSON(b []byte) error {
	*p = Pong{}
	found := false
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "node":
			p.Node = s.text()
		case "now":
			found = true
			p.Now = s.time()
		}
	}
	return s.end(found, "the answer to ping")
}
