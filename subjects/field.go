package subjects

import "strings"

// field is a field of a request.
type field uint8

const (
	fieldNone field = iota
	fieldName
	fieldName64
	fieldSession
	fieldRequest
	fieldDone
	fieldRequire
	fieldMode
	fieldKind
	fieldDrain
	fieldAcks
	fieldSlots
	fieldTake
	fieldEnqueue
	fieldRecall
	fieldNow
	fieldTrusted
	fieldTTL
	fieldGrace
	fieldWait
	fieldQuiet
	fieldOlderThan
	fieldKey
	fieldToken
	fieldHolder
	fieldData
	fieldOutcome
	fieldReason
	fieldPrefix
	fieldPrefix64
	fieldAfter
	fieldState
	fieldLimit
	fieldSecret
	fieldLocation
	fieldServer
	fieldCID
	fieldNode
	fieldBeat
	fieldReceipt
	fieldEpoch
	fieldUser
	fieldBuckets
	fieldCount
)

var fieldNames = [fieldCount]string{
	"", "name", "name64", "session", "request", "done", "require", "mode", "kind", "drain", "acks", "slots", "take",
	"enqueue", "recall", "now", "trusted", "ttl", "grace", "wait", "quiet", "older_than", "key", "token", "holder", "data",
	"outcome", "reason", "prefix", "prefix64", "after", "state", "limit", "secret", "location", "server", "cid", "node",
	"beat", "receipt", "epoch", "user", "buckets",
}

// String is the field's name in JSON.
func (f field) String() string { return fieldNames[f] }

// fieldSet is a set of fields.
type fieldSet uint64

func setOf(fields ...field) (s fieldSet) {
	for _, f := range fields {
		s |= 1 << f
	}
	return s
}

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }

var (
	commonFields = setOf(fieldSession, fieldRequest, fieldDone, fieldRequire)
	lockFields   = commonFields | setOf(fieldName, fieldName64)
)

// opFields are the fields that each operation knows. To it every other one is unknown, even if it is another operation's.
var opFields = [opCount]fieldSet{
	OpAcquire: lockFields | setOf(fieldMode, fieldSlots, fieldTake, fieldKind, fieldTTL, fieldGrace, fieldWait,
		fieldDrain, fieldQuiet, fieldAcks, fieldHolder, fieldData, fieldEnqueue, fieldRecall),
	OpRelease: lockFields | setOf(fieldKey, fieldOutcome),
	OpRenew:   lockFields | setOf(fieldKey, fieldTTL, fieldData, fieldTrusted),
	OpCancel:  lockFields | setOf(fieldToken),
	OpQuery:   lockFields,
	OpForce:   lockFields | setOf(fieldToken, fieldReason, fieldNow),
	OpCheck:   lockFields | setOf(fieldToken),
	OpReclaim: lockFields | setOf(fieldReceipt, fieldToken, fieldKey, fieldEpoch, fieldMode, fieldSlots, fieldTake,
		fieldKind, fieldUser, fieldTTL),
	OpList: commonFields | setOf(fieldPrefix, fieldPrefix64, fieldOlderThan, fieldState, fieldLimit, fieldAfter),
	OpSessionOpen: commonFields | setOf(fieldSecret, fieldTTL, fieldLocation, fieldName, fieldServer,
		fieldCID),
	OpSessionClose: commonFields,
	OpKeep:         commonFields | setOf(fieldBeat),
	OpInfo:         commonFields,
	OpServers:      commonFields | setOf(fieldLocation),
	OpPing:         commonFields | setOf(fieldNode),
	OpCluster:      commonFields | setOf(fieldBuckets),
}

// fieldsOfLength are the fields by the length of their names, which makes finding one quicker than in a map.
var fieldsOfLength = func() (table [len("older_than") + 1][]field) {
	for f := fieldName; f < fieldCount; f++ {
		n := len(fieldNames[f])
		table[n] = append(table[n], f)
	}
	return table
}()

// field finds the field of a name among those that the operation knows, or fieldNone.
func (o Op) field(name []byte) field {
	if len(name) >= len(fieldsOfLength) {
		return fieldNone
	}
	for _, f := range fieldsOfLength[len(name)] {
		if fieldNames[f] == string(name) && opFields[o].has(f) {
			return f
		}
	}
	return fieldNone
}

// headerField finds the field that a header carries, or fieldNone: Oclocks-Older-Than is older_than, in any case.
func (o Op) headerField(header string) field {
	const prefix = "oclocks-"
	if len(header) <= len(prefix) || !strings.EqualFold(header[:len(prefix)], prefix) {
		return fieldNone
	}
	name := strings.ReplaceAll(strings.ToLower(header[len(prefix):]), "-", "_")
	return o.field([]byte(name))
}
