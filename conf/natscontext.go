package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// NATSContext is what the `nats` command needs to act as a user: the fields of its context files that matter here.
type NATSContext struct {
	Description string `json:"description"`
	URL         string `json:"url"`
	Creds       string `json:"creds"`
	InboxPrefix string `json:"inbox_prefix"`
}

// InboxPrefix is below what a user of a zone with users may receive replies.
func InboxPrefix(key string) string { return "_INBOX." + key }

// WriteNATSContext writes a context for the `nats` command and for our client, where both look for it:
// $XDG_CONFIG_HOME/nats/context, or ~/.config/nats/context. It gives the path of the file; an fs.ErrExist if there is one
// of that name already.
func WriteNATSContext(name string, c NATSContext, environ []string) (path string, err error) {
	path, err = natsContextPath(name, environ)
	if err != nil {
		return "", err
	}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", fmt.Errorf("NATS context %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("NATS context %s: %w", name, err)
	}
	if err := createFile(path, append(content, '\n'), secret); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("NATS context %s: %w: choose another name, or remove %s", name, fs.ErrExist, path)
		}
		return "", fmt.Errorf("NATS context %s: %w", name, err)
	}
	return path, nil
}

func natsContextPath(name string, environ []string) (string, error) {
	if name == "" || name == "." || strings.ContainsAny(name, `/\`) || strings.Contains(name, "..") {
		return "", fmt.Errorf("%q cannot be the name of a NATS context: it becomes the name of a file", name)
	}
	base, ok := lookupEnv(environ, "XDG_CONFIG_HOME")
	if !ok {
		home, ok := lookupEnv(environ, "HOME")
		if !ok {
			return "", errors.New("neither XDG_CONFIG_HOME nor HOME says where NATS contexts are")
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "nats", "context", name+".json"), nil
}

// ClientURL is where a client on this machine connects to a daemon with these settings.
func (s *Settings) ClientURL() string {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil { // Validate refuses that
		return "nats://" + s.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "nats://" + net.JoinHostPort(host, port)
}
