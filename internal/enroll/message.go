package enroll

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/conf"
)

const (
	version = 1

	maxRequest   = 16 << 10  // bytes of a request; a token's user cannot send more
	maxAnswer    = 128 << 20 // bytes of an answer, unpacked
	maxParts     = 256
	partSize     = 512 << 10 // bytes of an answer in one message
	maxName      = 256
	maxErrorText = 300
)

// envelope is a request as it travels.
type envelope struct {
	Version int    `json:"v"`
	From    string `json:"from"`   // public curve key that the new node made for this request
	Sealed  []byte `json:"sealed"` // a signed ask
}

// signed is an ask with the signature of the token's key.
type signed struct {
	Ask       []byte `json:"ask"` // JSON of an ask, as it was signed
	Signature []byte `json:"signature"`
}

// ask is what a new node wants.
type ask struct {
	JWT  string `json:"jwt"`  // of the token
	Node string `json:"node"` // identifier
	Name string `json:"name"` // for people
	From string `json:"from"` // as in the envelope, so that nobody puts the ask into another one
	To   string `json:"to"`   // the cluster's public curve key
}

// part is one message of an answer. Failure is what is said to somebody whose request could not be opened: it proves
// nothing.
type part struct {
	Part    int      `json:"part,omitempty"` // from 1
	Of      int      `json:"of,omitempty"`
	Sealed  []byte   `json:"sealed,omitempty"` // its share of the sealed, packed answer
	Failure *failure `json:"failure,omitempty"`
}

type failure struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// answer is what a new node gets.
type answer struct {
	Failure    *failure        `json:"failure,omitempty"`
	Membership conf.Membership `json:"membership"`
	Settings   json.RawMessage `json:"settings,omitempty"`
}

// makeRequest seals and signs what a new node asks.
func makeRequest(token *conf.JoinToken, own nkeys.KeyPair, node, name string) ([]byte, error) {
	from, err := own.PublicKey()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(ask{JWT: token.JWT, Node: node, Name: name, From: from, To: token.Key})
	if err != nil {
		return nil, err
	}
	signature, err := token.Credentials().Pair.Sign(text)
	if err != nil {
		return nil, err
	}
	inner, err := json.Marshal(signed{Ask: text, Signature: signature})
	if err != nil {
		return nil, err
	}
	sealed, err := own.Seal(inner, token.Key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{Version: version, From: from, Sealed: sealed})
}

// openRequest reads a request that was sealed for the cluster. The signature is not checked yet.
func openRequest(auth *conf.Auth, data []byte) (a ask, s signed, err error) {
	var e envelope
	if len(data) > maxRequest || json.Unmarshal(data, &e) != nil {
		return a, s, errors.New("not a request to join")
	}
	if e.Version != version {
		return a, s, fmt.Errorf("version %d of a request to join is unknown: use the same version of oclocks on all nodes", e.Version)
	}
	if !nkeys.IsValidPublicCurveKey(e.From) {
		return a, s, errors.New("not a request to join")
	}
	inner, err := auth.Open(e.Sealed, e.From)
	if err != nil {
		return a, s, errors.New("the request is not for this cluster")
	}
	if json.Unmarshal(inner, &s) != nil || json.Unmarshal(s.Ask, &a) != nil {
		return a, s, errors.New("not a request to join")
	}
	key, err := auth.CurveKey()
	if err != nil {
		return a, s, err
	}
	if a.From != e.From || a.To != key {
		return a, s, errors.New("the request was taken out of another one")
	}
	return a, s, nil
}

// pack seals an answer and cuts it into messages.
func pack(auth *conf.Auth, a answer, recipient string) ([][]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(text); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	sealed, err := auth.Seal(packed.Bytes(), recipient)
	if err != nil {
		return nil, err
	}
	of := (len(sealed) + partSize - 1) / partSize
	if of > maxParts {
		return nil, fmt.Errorf("the answer has %d bytes", len(sealed))
	}
	messages := make([][]byte, of)
	for i := range messages {
		share := sealed[i*partSize : min(len(sealed), (i+1)*partSize)]
		if messages[i], err = json.Marshal(part{Part: i + 1, Of: of, Sealed: share}); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// unpack opens what pack sealed. ErrForged if the cluster did not.
func unpack(own nkeys.KeyPair, cluster string, sealed []byte) (answer, error) {
	var a answer
	packed, err := own.Open(sealed, cluster)
	if err != nil {
		return a, ErrForged
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return a, fmt.Errorf("the answer of the cluster: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = errors.New("it is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("the answer of the cluster: %w", err)
	}
	return a, nil
}

// parts collects the messages of an answer, in any order.
type parts struct {
	shares [][]byte
	missed int
}

// add takes one message; done says that all are there. What fits to nothing is left out: anybody on the line can send it.
func (p *parts) add(m part) (done bool) {
	if m.Of < 1 || m.Of > maxParts || m.Part < 1 || m.Part > m.Of || len(m.Sealed) == 0 || len(m.Sealed) > partSize {
		return false
	}
	if p.shares == nil {
		p.shares, p.missed = make([][]byte, m.Of), m.Of
	}
	if m.Of != len(p.shares) || p.shares[m.Part-1] != nil {
		return false
	}
	p.shares[m.Part-1] = m.Sealed
	p.missed--
	return p.missed == 0
}

func (p *parts) all() []byte { return bytes.Join(p.shares, nil) }
