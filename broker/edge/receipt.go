package edge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Receipts signs grants, so that a holder can prove its hold to a cluster that has lost it (reclaim, in recovery). Not
// safe for concurrent use.
type Receipts struct {
	mac  hash.Hash
	buf  []byte
	sum  []byte
	made subjects.Texts // they live as long as the grants that they are in: for moments
}

// NewReceipts derives the key from the cluster's secret (32 bytes).
func NewReceipts(clusterSecret []byte) *Receipts {
	return &Receipts{mac: hmac.New(sha256.New, deriveKey(clusterSecret, "receipt"))}
}

// Complete fills in what a table leaves to its node: which node it is, and the receipt. It also keeps the grant from promising a lease
// that is longer than the longest: that of a session from before max_lease was made shorter. The tables keep what such a session has, and
// a keep-alive tells it the same ([Promise]).
func (r *Receipts) Complete(zone, node string, longest time.Duration, g *subjects.Grant) {
	g.Node = node
	g.Receipt = r.Sign(zone, g)
	if g.Kind == subjects.Connection {
		g.Lease = min(g.Lease, longest)
	}
}

// Sign is the base64url of a MAC over everything that a reclaim says: zone, name, token, key, epoch, mode, slots, take,
// kind, session, user, ttl. The texts are preceded by their lengths.
func (r *Receipts) Sign(zone string, g *subjects.Grant) string {
	b := r.buf[:0]
	for _, s := range [...]string{zone, g.Name, g.Session, g.User} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, n := range [...]uint64{g.Token, g.Key, g.Epoch, uint64(g.Mode), uint64(g.Slots), uint64(g.Take),
		uint64(g.Kind), uint64(g.TTL)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	r.buf = b
	r.mac.Reset()
	r.mac.Write(b)
	r.sum = r.mac.Sum(r.sum[:0])
	r.buf = tokenText.AppendEncode(r.buf[:0], r.sum[:macLen])
	return r.made.Of(r.buf)
}
