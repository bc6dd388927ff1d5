package conf

import (
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// The cluster's curve key (X25519, an nkeys "xkey") seals what one side must be sure to tell the cluster alone, and to have
// from the cluster. It is made with the other keys; a file of an earlier version gets one when it is first needed.

func newCurve() (string, error) {
	pair, err := nkeys.CreateCurveKeys()
	if err != nil {
		return "", fmt.Errorf("make a curve key: %w", err)
	}
	seed, err := pair.Seed()
	return string(seed), err
}

// curve is the key pair, which is made and kept if there is none yet.
func (a *Auth) curve() (nkeys.KeyPair, error) {
	if a.current().Curve == "" {
		err := a.change(func(s *authState) (err error) {
			if s.Curve == "" {
				s.Curve, err = newCurve()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	pair, err := nkeys.FromCurveSeed([]byte(a.current().Curve))
	if err != nil {
		return nil, errors.New("the curve key is not valid")
	}
	return pair, nil
}

// CurveKey is the cluster's public curve key.
func (a *Auth) CurveKey() (string, error) {
	pair, err := a.curve()
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// Seal encrypts a message so that only the owner of that public curve key can read it, and knows that it is the cluster's.
func (a *Auth) Seal(message []byte, recipient string) ([]byte, error) {
	pair, err := a.curve()
	if err != nil {
		return nil, err
	}
	return pair.Seal(message, recipient)
}

// Open decrypts what the owner of that public curve key sealed for the cluster.
func (a *Auth) Open(sealed []byte, sender string) ([]byte, error) {
	pair, err := a.curve()
	if err != nil {
		return nil, err
	}
	return pair.Open(sealed, sender)
}
