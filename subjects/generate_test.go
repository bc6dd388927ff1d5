package subjects

import (
	"time"

	"pgregory.net/rapid"
)

// Generators of valid messages and requests for the property tests.

func text(t *rapid.T) string {
	return rapid.OneOf(rapid.Just(""), rapid.StringN(0, 20, -1)).Draw(t, "text")
}

func some(t *rapid.T) string {
	return rapid.StringN(1, 20, -1).Draw(t, "text")
}

func token(t *rapid.T) string {
	return rapid.StringMatching(`[A-Za-z0-9]{1,12}`).Draw(t, "token")
}

func lockName(t *rapid.T) string {
	return rapid.OneOf(rapid.StringN(1, 30, -1), rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 30), func(b []byte) string {
		return string(b)
	})).Draw(t, "name")
}

func span(t *rapid.T, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, "span"))
}

func moment(t *rapid.T) int64   { return rapid.Int64Range(1, 1<<47).Draw(t, "ms") }
func number(t *rapid.T) uint64  { return rapid.Uint64().Draw(t, "number") }
func small(t *rapid.T) uint32   { return rapid.Uint32().Draw(t, "small") }
func count(t *rapid.T) int      { return rapid.IntMin(0).Draw(t, "count") }
func flip(t *rapid.T) bool      { return rapid.Bool().Draw(t, "flip") }
func fencing(t *rapid.T) uint64 { return rapid.Uint64Max(MaxToken).Draw(t, "fencing token") }

func rawJSON(t *rapid.T) []byte {
	return []byte(rapid.SampledFrom([]string{`null`, `{}`, `{"a": [1,2.5e3,"\n"]}`, `"x"`, `-1`, `true`}).Draw(t, "data"))
}

// listOf draws a list that is nil rather than empty, as decoding makes it.
func listOf[T any](t *rapid.T, draw func(*rapid.T) T) (list []T) {
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		list = append(list, draw(t))
	}
	return list
}

// asMessage makes a generator of messages of a function that draws one.
func asMessage[T message](draw func(*rapid.T) T) *rapid.Generator[message] {
	return rapid.Custom(func(t *rapid.T) message { return draw(t) })
}

func genGrant(t *rapid.T) *Grant {
	return &Grant{
		Name: lockName(t), Key: number(t), Token: fencing(t), Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode")), Take: small(t),
		TTL: span(t, maxDuration), Lease: span(t, maxDuration), Bucket: small(t), Epoch: number(t), Node: text(t), Ticket: number(t),
		Waited: span(t, maxDuration), Beat: number(t), Durable: flip(t), Receipt: text(t),
	}
}

func genReleased(t *rapid.T) *Released {
	return &Released{Token: fencing(t), Held: span(t, maxDuration)}
}

func genQueued(t *rapid.T) *Queued {
	return &Queued{Name: lockName(t), Ticket: number(t), Place: small(t), Lease: span(t, time.Hour), Bucket: small(t), Node: text(t)}
}

func genCancelled(t *rapid.T) *Cancelled {
	return &Cancelled{Request: text(t), Was: text(t), Token: fencing(t)}
}

func genForced(t *rapid.T) *Forced {
	f := &Forced{Token: fencing(t), Ended: flip(t)}
	if !f.Ended {
		f.Ends = span(t, time.Hour)
	}
	return f
}

func genChecked(t *rapid.T) *Checked {
	return &Checked{Current: flip(t), Newest: fencing(t), Oldest: fencing(t)}
}

func genHolder(t *rapid.T) Holder {
	h := Holder{
		Holder: text(t), User: text(t), Session: text(t), Token: fencing(t), Since: moment(t), TTL: span(t, MaxTTL),
		Take: small(t), Kind: Kind(rapid.IntRange(0, 2).Draw(t, "kind")), Forced: flip(t),
	}
	if flip(t) {
		h.Data = rawJSON(t)
	}
	return h
}

func genWaiter(t *rapid.T) Waiter {
	return Waiter{
		Ticket: number(t), Holder: text(t), User: text(t), Session: text(t), Mode: Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
		Take: small(t), Since: moment(t),
	}
}

func genRecord(t *rapid.T) *Record {
	r := &Record{Name: lockName(t), Queue: listOf(t, genWaiter), Waiting: count(t), More: count(t), Held: flip(t)}
	if r.Held {
		r.Mode = Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
		r.Slots = small(t)
		r.Holders = listOf(t, genHolder)
	}
	return r
}

func genPage(t *rapid.T) *Page {
	return &Page{Locks: listOf(t, func(t *rapid.T) Record { return *genRecord(t) }), Next: text(t)}
}

func genOpened(t *rapid.T) *Opened {
	return &Opened{
		Session: some(t), Secret: text(t), User: text(t), TTL: span(t, time.Hour), Lease: span(t, time.Hour), Node: text(t),
		Incarnation: number(t), Disconnect: text(t), Events: text(t),
	}
}

func genClosed(t *rapid.T) *SessionClosed { return &SessionClosed{Released: count(t)} }

func genKept(t *rapid.T) *Kept {
	k := &Kept{Node: text(t), Beat: number(t), Count: count(t), Hash: number(t), Lease: span(t, time.Hour)}
	if flip(t) {
		k.Buckets = append([]KeptBucket{}, listOf(t, func(t *rapid.T) KeptBucket {
			return KeptBucket{Bucket: small(t), Epoch: number(t), Count: count(t), Hash: number(t)}
		})...)
	}
	return k
}

func genMap(t *rapid.T) Map {
	m := Map{Change: number(t)}
	if flip(t) {
		m.Primary = append([]string{}, listOf(t, text)...)
	}
	return m
}

func genInfo(t *rapid.T) *Info {
	return &Info{
		Protocol: 1 + count(t)/2, Features: append([]string{}, listOf(t, text)...), Version: text(t), Cluster: text(t), Zone: text(t),
		User: text(t), Node: text(t), Buckets: small(t), Map: genMap(t), Mode: text(t), Have: count(t), Need: count(t),
		MaxLease: span(t, time.Hour),
	}
}

func genServers(t *rapid.T) *Servers {
	return &Servers{Servers: listOf(t, func(t *rapid.T) Server {
		return Server{
			Node: text(t), Name: text(t), URLs: append([]string{}, listOf(t, text)...), Location: text(t), Status: text(t),
		}
	})}
}

func genPong(t *rapid.T) *Pong { return &Pong{Node: text(t), Now: moment(t)} }

func genRefusal(t *rapid.T) *Refusal {
	r := &Refusal{
		Code: rapid.IntRange(400, 599).Draw(t, "code"), Reason: text(t), Message: text(t), Field: text(t), Why: text(t),
		Holder: text(t), HasQueue: flip(t), RetryAfter: span(t, time.Hour),
	}
	if flip(t) {
		r.Since = moment(t)
	}
	if r.HasQueue {
		r.Queue = count(t)
	}
	if flip(t) {
		m := genMap(t)
		r.Map = &m
	}
	return r
}

func genSessionEvent(t *rapid.T) *SessionEvent {
	e := &SessionEvent{
		Subject: text(t), Type: some(t), Name: lockName(t), Token: fencing(t), Ticket: number(t), Place: small(t), Request: text(t),
		Why: text(t), Queue: count(t),
	}
	if flip(t) {
		e.Grant = genGrant(t)
	}
	if flip(t) {
		e.Refusal = genRefusal(t)
	}
	return e
}

func genLockEvent(t *rapid.T) *LockEvent {
	return &LockEvent{
		Subject: text(t), Type: some(t), Name: lockName(t), Token: fencing(t), Holder: text(t), User: text(t), Outcome: text(t),
		Held: span(t, maxDuration), Bucket: small(t),
	}
}

func genServerEvent(t *rapid.T) *ServerEvent {
	return &ServerEvent{
		Subject: text(t), Type: some(t), Node: text(t), Name: text(t), URLs: listOf(t, text), Status: text(t), Mode: text(t),
	}
}

// genRequest draws a valid request with everything in it that Decode derives.
func genRequest(t *rapid.T, op Op) Request {
	r := Request{Op: op}
	if op.OnName() {
		r.Name = lockName(t)
	}
	if flip(t) || op == OpKeep || op == OpSessionClose {
		r.Session = some(t)
		r.Done = number(t)
	}
	if flip(t) || op == OpCancel {
		r.Has |= HasRequest
		if r.Session != "" {
			r.Number = 1 + number(t)/2
		} else {
			r.RequestID = some(t)
		}
	}
	switch op {
	case OpAcquire:
		genAcquire(t, &r)
	case OpRelease:
		r.Key, r.Outcome = number(t), text(t)
		r.Has |= HasKey
	case OpRenew:
		r.Key, r.Trusted = number(t), flip(t)
		r.Has |= HasKey
		genTTL(t, &r)
		genData(t, &r)
	case OpCancel:
		if flip(t) {
			r.Token = max(1, fencing(t))
			r.Has |= HasToken
		}
	case OpForce:
		r.Token, r.Reason, r.Now = fencing(t), text(t), flip(t)
		r.Has |= HasToken
	case OpCheck:
		r.Token = fencing(t)
		r.Has |= HasToken
	case OpReclaim:
		r.Receipt, r.Key, r.Token, r.Epoch, r.User = some(t), number(t), fencing(t), number(t), text(t)
		r.Kind = Kind(rapid.IntRange(0, 2).Draw(t, "kind"))
		r.Has |= HasKey | HasToken
		genMode(t, &r)
		genTTL(t, &r)
	case OpList:
		r.OlderThan, r.After, r.Limit = span(t, maxDuration), text(t), rapid.Uint32Range(1, MaxListLimit).Draw(t, "limit")
		r.State = State(rapid.IntRange(0, 2).Draw(t, "state"))
		if flip(t) {
			r.Prefix = lockName(t)
			r.Has |= HasPrefix
		}
	case OpSessionOpen:
		r.Secret, r.Location, r.Holder = text(t), text(t), text(t)
		genTTL(t, &r)
		if flip(t) {
			r.Server, r.CID = some(t), number(t)
		}
	case OpKeep:
		r.Beat = number(t)
	case OpServers:
		r.Location = text(t)
	case OpPing:
		r.Node = token(t)
	case OpCluster:
		if flip(t) {
			r.FirstBucket = rapid.Uint32Range(0, 1<<32-MaxBucketRange).Draw(t, "first bucket")
			r.LastBucket = r.FirstBucket + rapid.Uint32Range(0, MaxBucketRange-1).Draw(t, "more buckets")
			r.Has |= HasBuckets
		}
	}
	return r
}

func genAcquire(t *rapid.T, r *Request) {
	genMode(t, r)
	genTTL(t, r)
	genData(t, r)
	r.Holder = text(t)
	r.Acks = Acks(rapid.IntRange(0, 3).Draw(t, "acks"))
	if flip(t) {
		r.Wait = span(t, MaxWait)
		r.Has |= HasWait
	}
	if r.Mode == Exclusive {
		r.Drain = Drain(rapid.IntRange(0, 2).Draw(t, "drain"))
	}
	if r.Drain == Timed {
		r.Quiet = 1 + span(t, MaxQuiet-1)
	}
	if r.Session == "" {
		r.Kind = Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
		return
	}
	r.Kind = Kind(rapid.IntRange(0, 2).Draw(t, "kind"))
	r.Enqueue, r.Recall = flip(t), flip(t)
	if r.Kind != Static && flip(t) {
		r.Grace = span(t, MaxTTL)
		r.Has |= HasGrace
	}
}

func genMode(t *rapid.T, r *Request) {
	r.Mode = Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
	r.Take = 1
	if r.Mode == Semaphore {
		r.Slots = rapid.Uint32Range(1, MaxSlots).Draw(t, "slots")
		r.Take = rapid.Uint32Range(1, r.Slots).Draw(t, "take")
	}
}

func genTTL(t *rapid.T, r *Request) {
	if flip(t) {
		r.TTL = span(t, MaxTTL)
		r.Has |= HasTTL
	}
}

func genData(t *rapid.T, r *Request) {
	if flip(t) {
		r.Data = rawJSON(t)
		r.Has |= HasData
	}
}
