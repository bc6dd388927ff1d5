package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Handout says what a new user is to be given.
type Handout struct {
	Zone, Name string
	Role       Role
	TTL        time.Duration // how long the credentials count, in whole seconds; 0 for ever
	Creds      string        // path of the file for the credentials, which must not exist
	Context    string        // name of the NATS context to write; "" for none
	URL        string        // where the user connects, for the context
}

// HandOut makes credentials and the files that a user needs. The file of the credentials is readable by its owner only;
// path is where the context was written, "" if none was asked for. If a file cannot be written the credentials are
// revoked again.
func (a *Auth) HandOut(h Handout, environ []string) (key, path string, err error) {
	if _, err := os.Lstat(h.Creds); !errors.Is(err, fs.ErrNotExist) {
		return "", "", errors.Join(fmt.Errorf("%s: %w: choose another file with --out", h.Creds, fs.ErrExist), err)
	}
	creds, err := filepath.Abs(h.Creds)
	if err != nil {
		return "", "", fmt.Errorf("credentials of %s: %w", h.Name, err)
	}
	if err := a.EnsureZone(h.Zone); err != nil {
		return "", "", err
	}
	content, key, err := a.IssueUser(h.Zone, h.Name, h.Role, h.TTL)
	if err != nil {
		return "", "", err
	}
	undo := func(err error) (string, string, error) {
		_, revokeErr := a.RevokeUser(h.Zone, key)
		return "", "", errors.Join(err, revokeErr)
	}
	if h.Context != "" {
		path, err = WriteNATSContext(h.Context, NATSContext{
			Description: "oclocks zone " + h.Zone + ", " + string(h.Role) + " " + h.Name,
			URL:         h.URL, Creds: creds, InboxPrefix: InboxPrefix(key),
		}, environ)
		if err != nil {
			return undo(err)
		}
	}
	if err := createFile(creds, content, secret); err != nil {
		err = fmt.Errorf("credentials of %s: %w", h.Name, err)
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		return undo(err)
	}
	return key, path, nil
}
