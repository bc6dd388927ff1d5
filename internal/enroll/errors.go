package enroll

import (
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/conf"
)

var (
	// ErrUsed says that another node has used the join token.
	ErrUsed = errors.New("the join token was used by another node: make a new one")
	// ErrRefused says that the cluster does not take the token: it is of another cluster, or changed.
	ErrRefused = errors.New("the cluster refuses the join token")
	// ErrForged says that an answer was not from the cluster that the token is of.
	ErrForged = errors.New("the answer is not from the cluster of the token: somebody else answers at that address, or changes what it says")
	// ErrUnreachable says that no daemon was reached.
	ErrUnreachable = errors.New("no daemon of the cluster was reached")
)

// The codes under which errors travel.
const (
	codeUsed    = "used"
	codeExpired = "expired"
	codeRefused = "refused"
)

func encodeError(err error) *failure {
	f := &failure{Code: codeRefused, Text: err.Error()}
	switch {
	case errors.Is(err, ErrUsed):
		f.Code = codeUsed
	case errors.Is(err, conf.ErrExpired):
		f.Code = codeExpired
	}
	return f
}

func (f *failure) err() error {
	switch f.Code {
	case codeUsed:
		return ErrUsed
	case codeExpired:
		return fmt.Errorf("%w by the clock of the cluster", conf.ErrExpired)
	}
	text := f.Text
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return fmt.Errorf("%w: %q", ErrRefused, text)
}
