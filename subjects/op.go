package subjects

// Op is an operation of the protocol. In a subject it is one token, its String.
type Op uint8

// The operations. OpNone is the zero value and never valid on the wire.
const (
	OpNone Op = iota
	OpAcquire
	OpRelease
	OpRenew
	OpCancel
	OpQuery
	OpList
	OpForce
	OpCheck
	OpReclaim
	OpSessionOpen
	OpSessionClose
	OpKeep
	OpInfo
	OpServers
	OpPing
	OpCluster
	opCount
)

var opNames = [opCount]string{
	"", "acquire", "release", "renew", "cancel", "query", "list", "force", "check", "reclaim",
	"session-open", "session-close", "keep", "info", "servers", "ping", "cluster",
}

// String is the operation's token in a subject, or "" for an Op that does not exist.
func (o Op) String() string {
	if o >= opCount {
		return ""
	}
	return opNames[o]
}

// ParseOp finds the operation that a subject's token names; ok is false if there is none.
func ParseOp(token string) (op Op, ok bool) {
	for i := OpAcquire; i < opCount; i++ {
		if opNames[i] == token {
			return i, true
		}
	}
	return OpNone, false
}

// OnName says whether the operation is about one lock's name, and so belongs to the primary of one bucket.
func (o Op) OnName() bool {
	switch o {
	case OpAcquire, OpRelease, OpRenew, OpCancel, OpQuery, OpForce, OpCheck, OpReclaim:
		return true
	}
	return false
}
