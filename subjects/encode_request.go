package subjects

import "strconv"

// AppendJSON appends the request's body to dst: the fields that its operation knows and that are set. It is for clients;
// nothing is checked, so a request that is not valid becomes a body that is refused.
func (r *Request) AppendJSON(dst []byte) []byte {
	known := opFields[r.Op]
	dst = append(dst, '{')
	if known.has(fieldName) && r.Op != OpSessionOpen {
		dst = appendBytes(dst, "name", r.Name)
	}
	dst = optText(dst, "session", r.Session)
	switch {
	case r.Number != 0:
		dst = appendUint(dst, "request", r.Number)
	case r.RequestID != "":
		dst = appendText(dst, "request", r.RequestID)
	}
	dst = optUint(dst, "done", r.Done)
	switch r.Op {
	case OpAcquire:
		dst = r.appendAcquire(dst)
	case OpRelease, OpRenew:
		dst = appendHex(dst, "key", r.Key)
		dst = r.appendTTL(dst)
		dst = r.appendData(dst)
		dst = optText(dst, "outcome", r.Outcome)
		dst = optTrue(dst, "trusted", r.Trusted)
	case OpCancel:
		dst = optUint(dst, "token", r.Token)
	case OpForce, OpCheck:
		dst = appendUint(dst, "token", r.Token)
		dst = optText(dst, "reason", r.Reason)
		dst = optTrue(dst, "now", r.Now)
	case OpReclaim:
		dst = r.appendReclaim(dst)
	case OpList:
		dst = r.appendList(dst)
	case OpSessionOpen:
		dst = r.appendOpen(dst)
	case OpKeep:
		dst = appendUint(dst, "beat", r.Beat)
	case OpServers:
		dst = optText(dst, "location", r.Location)
	case OpPing:
		dst = optText(dst, "node", r.Node)
	case OpCluster:
		dst = r.appendBuckets(dst)
	}
	return append(dst, '}')
}

func (r *Request) appendBuckets(dst []byte) []byte {
	if r.Has&HasBuckets == 0 {
		return dst
	}
	text := strconv.FormatUint(uint64(r.FirstBucket), 10)
	if r.LastBucket != r.FirstBucket {
		text += "-" + strconv.FormatUint(uint64(r.LastBucket), 10)
	}
	return appendText(dst, "buckets", text)
}

func (r *Request) appendAcquire(dst []byte) []byte {
	dst = r.appendMode(dst)
	dst = optWord(dst, "kind", r.Kind.String())
	dst = r.appendTTL(dst)
	if r.Has&HasGrace != 0 || r.Grace != 0 {
		dst = appendSpan(dst, "grace", r.Grace)
	}
	if r.Has&HasWait != 0 || r.Wait != 0 {
		dst = appendSpan(dst, "wait", r.Wait)
	}
	if r.Drain != Hard {
		dst = appendWord(dst, "drain", r.Drain.String())
	}
	dst = optSpan(dst, "quiet", r.Quiet)
	dst = optWord(dst, "acks", r.Acks.String())
	dst = optText(dst, "holder", r.Holder)
	dst = r.appendData(dst)
	dst = optTrue(dst, "enqueue", r.Enqueue)
	return optTrue(dst, "recall", r.Recall)
}

// appendMode writes the mode and what goes with it.
func (r *Request) appendMode(dst []byte) []byte {
	if r.Mode == Exclusive {
		return dst
	}
	dst = appendWord(dst, "mode", r.Mode.String())
	if r.Mode != Semaphore {
		return dst
	}
	dst = appendUint(dst, "slots", uint64(r.Slots))
	return optUint(dst, "take", uint64(r.Take))
}

func (r *Request) appendTTL(dst []byte) []byte {
	if r.Has&HasTTL == 0 && r.TTL == 0 {
		return dst
	}
	return appendSpan(dst, "ttl", r.TTL)
}

func (r *Request) appendData(dst []byte) []byte {
	if r.Data == nil {
		return dst
	}
	return appendRaw(dst, "data", r.Data)
}

func (r *Request) appendReclaim(dst []byte) []byte {
	dst = appendText(dst, "receipt", r.Receipt)
	dst = appendHex(dst, "key", r.Key)
	dst = appendUint(dst, "token", r.Token)
	dst = optUint(dst, "epoch", r.Epoch)
	dst = r.appendMode(dst)
	dst = optWord(dst, "kind", r.Kind.String())
	dst = optText(dst, "user", r.User)
	return r.appendTTL(dst)
}

func (r *Request) appendList(dst []byte) []byte {
	if r.Prefix != "" || r.Has&HasPrefix != 0 {
		dst = appendBytes(dst, "prefix", r.Prefix)
	}
	dst = optSpan(dst, "older_than", r.OlderThan)
	dst = optWord(dst, "state", r.State.String())
	dst = optUint(dst, "limit", uint64(r.Limit))
	return optText(dst, "after", r.After)
}

func (r *Request) appendOpen(dst []byte) []byte {
	dst = optText(dst, "secret", r.Secret)
	dst = r.appendTTL(dst)
	dst = optText(dst, "location", r.Location)
	dst = optText(dst, "name", r.Holder)
	if r.Server == "" {
		return dst
	}
	dst = appendText(dst, "server", r.Server)
	return appendUint(dst, "cid", r.CID)
}
