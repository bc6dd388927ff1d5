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

// Check refuses what cannot be written: an fs.ErrExist if there is a file for the credentials.
func (h Handout) Check() error {
	if _, err := os.Lstat(h.Creds); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w: choose another file with --out", h.Creds, fs.ErrExist), err)
	}
	return nil
}

// Write writes the files that a user needs: content is that of the credentials, key the user's public one. The file of the
// credentials is readable by its owner only; path is where the context was written, "" if none was asked for. After an
// error there is neither.
func (h Handout) Write(content []byte, key string, environ []string) (path string, err error) {
	creds, err := filepath.Abs(h.Creds)
	if err != nil {
		return "", fmt.Errorf("credentials of %s: %w", h.Name, err)
	}
	if h.Context != "" {
		path, err = WriteNATSContext(h.Context, NATSContext{
			Description: "oclocks zone " + h.Zone + ", " + string(h.Role) + " " + h.Name,
			URL:         h.URL, Creds: creds, InboxPrefix: InboxPrefix(key),
		}, environ)
		if err != nil {
			return "", err
		}
	}
	if err := createFile(creds, content, secret); err != nil {
		err = fmt.Errorf("credentials of %s: %w", h.Name, err)
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		return "", err
	}
	return path, nil
}

// HandOut makes credentials and the files that a user needs, see Handout.Write. If a file cannot be written the credentials
// are revoked again.
func (a *Auth) HandOut(h Handout, environ []string) (key, path string, err error) {
	if err := h.Check(); err != nil {
		return "", "", err
	}
	if err := a.EnsureZone(h.Zone); err != nil {
		return "", "", err
	}
	content, key, err := a.IssueUser(h.Zone, h.Name, h.Role, h.TTL)
	if err != nil {
		return "", "", err
	}
	if path, err = h.Write(content, key, environ); err != nil {
		_, revokeErr := a.RevokeUser(h.Zone, key)
		return "", "", errors.Join(err, revokeErr)
	}
	return key, path, nil
}
