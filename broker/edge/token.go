package edge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// A session is a signed token: whoever has the cluster's secret can verify it without asking anybody, so every node
// accepts it. The token is the session's public id (subjects.SessionIDLen characters, the base64url of 8 bytes) followed by the base64url of
//
//	incarnation 8 | lease in ms 4 | hash of the server's id 8, or 0 | connection number 8, or random | MAC 16
//
// and the secret, with which the session can be opened again, is the base64url of id 8 | incarnation 8 | MAC 16. Both
// MACs cover the zone and the user, so a token is worth nothing for anybody else.
const (
	// SessionRawLen is the length in bytes of what a session's public id is made of, drawn at random.
	SessionRawLen = 8

	sessionBodyLen = 8 + 4 + 8 + 8
	macLen         = 16
)

// ErrToken is what everything is that was not made for this user in this zone of this cluster.
var ErrToken = errors.New("not a session token of this user, zone and cluster")

var tokenText = base64.RawURLEncoding.Strict()

// tokens makes and verifies session tokens. It is not safe for concurrent use.
type tokens struct {
	zone   string
	token  hash.Hash // HMAC-SHA256, keyed
	secret hash.Hash
	sum    []byte
}

// newTokens derives the keys of session tokens from the cluster's secret (32 bytes).
func newTokens(clusterSecret []byte, zone string) *tokens {
	return &tokens{
		zone:   zone,
		token:  hmac.New(sha256.New, deriveKey(clusterSecret, "session token")),
		secret: hmac.New(sha256.New, deriveKey(clusterSecret, "session secret")),
		sum:    make([]byte, 0, sha256.Size),
	}
}

// deriveKey gives each use of the cluster's secret a key of its own.
func deriveKey(clusterSecret []byte, use string) []byte {
	h := hmac.New(sha256.New, clusterSecret)
	h.Write([]byte("oclocks " + use))
	return h.Sum(nil)
}

// mint signs the token and the secret of a session.
func (t *tokens) mint(user string, s bucket.Session) (token, secret string, err error) {
	id, err := randomOf(s.ID)
	if err != nil {
		return "", "", err
	}
	body := make([]byte, 0, sessionBodyLen+macLen)
	body = binary.BigEndian.AppendUint64(body, s.Incarnation)
	body = binary.BigEndian.AppendUint32(body, uint32(s.Lease/time.Millisecond))
	body = binary.BigEndian.AppendUint64(body, connHash(s.Conn.Server))
	body = binary.BigEndian.AppendUint64(body, s.Conn.CID)
	body = append(body, t.mac(t.token, user, s.ID, body)...)
	token = s.ID + tokenText.EncodeToString(body)

	back := binary.BigEndian.AppendUint64(make([]byte, 0, 2*SessionRawLen+macLen), id)
	back = binary.BigEndian.AppendUint64(back, s.Incarnation)
	back = append(back, t.mac(t.secret, user, s.ID, back[SessionRawLen:])...)
	return token, tokenText.EncodeToString(back), nil
}

// verify reads a token; the error is ErrToken for everything that is not this user's token in this zone.
func (t *tokens) verify(user, token string) (bucket.Session, error) {
	if len(token) != subjects.SessionIDLen+tokenText.EncodedLen(sessionBodyLen+macLen) {
		return bucket.Session{}, ErrToken
	}
	id := token[:subjects.SessionIDLen]
	body, err := tokenText.DecodeString(token[subjects.SessionIDLen:])
	if err != nil || len(body) != sessionBodyLen+macLen ||
		!hmac.Equal(body[sessionBodyLen:], t.mac(t.token, user, id, body[:sessionBodyLen])) {
		return bucket.Session{}, ErrToken
	}
	s := bucket.Session{
		ID:          id,
		Incarnation: binary.BigEndian.Uint64(body),
		Lease:       time.Duration(binary.BigEndian.Uint32(body[8:])) * time.Millisecond,
	}
	s.Conn.CID = binary.BigEndian.Uint64(body[20:])
	if server := binary.BigEndian.Uint64(body[12:]); server != 0 {
		s.Conn.Server = connServer(server)
	}
	return s, nil
}

// comeBack reads a secret and gives the session's id and the incarnation that the secret was made for.
func (t *tokens) comeBack(user, secret string) (id string, incarnation uint64, err error) {
	if len(secret) != tokenText.EncodedLen(2*SessionRawLen+macLen) {
		return "", 0, ErrToken // the decoder passes over line ends
	}
	raw, err := tokenText.DecodeString(secret)
	if err != nil || len(raw) != 2*SessionRawLen+macLen {
		return "", 0, ErrToken
	}
	id = tokenText.EncodeToString(raw[:SessionRawLen])
	body := raw[SessionRawLen : 2*SessionRawLen]
	if !hmac.Equal(raw[2*SessionRawLen:], t.mac(t.secret, user, id, body)) {
		return "", 0, ErrToken
	}
	return id, binary.BigEndian.Uint64(body), nil
}

// mac covers the zone, the user and the id with their lengths, so that no two triples look alike, and the body.
func (t *tokens) mac(h hash.Hash, user, id string, body []byte) []byte {
	h.Reset()
	for _, s := range []string{t.zone, user, id} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Write(body)
	t.sum = h.Sum(t.sum[:0])
	return t.sum[:macLen]
}

// NewID is the public id of a session that is made of random bytes.
func NewID(random [SessionRawLen]byte) string { return tokenText.EncodeToString(random[:]) }

// A connection is named by a hash of its server's id, because the id itself (56 characters) would double the token.
// Two servers of one cluster with one hash would at worst end a session early that named the other's connection.
func connHash(server string) uint64 {
	if server == "" {
		return 0
	}
	h, err := strconv.ParseUint(server, 16, 64)
	if err != nil {
		return 0
	}
	return h
}

func connServer(h uint64) string { return strconv.FormatUint(h, 16) }

// ConnOf names a client's connection as sessions do.
func ConnOf(serverID string, cid uint64) bucket.Conn {
	return bucket.Conn{Server: connServer(xxhash.Sum64String(serverID) | 1), CID: cid}
}
