package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// natsContext is what we use of a context file of the nats CLI.
type natsContext struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	InboxPrefix string `json:"inbox_prefix"`
}

// loadContext reads the context of a name or, if that is "", NATS_CONTEXT's or the selected one. It is empty if none is
// named or selected.
func loadContext(name string) (natsContext, error) {
	var found natsContext
	dir, err := natsConfigDir()
	if err != nil {
		return found, err
	}
	if name == "" {
		name = os.Getenv("NATS_CONTEXT")
	}
	if name == "" {
		selected, err := os.ReadFile(filepath.Join(dir, "context.txt"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return found, nil
		case err != nil:
			return found, fmt.Errorf("read the selected NATS context: %w", err)
		}
		if name = strings.TrimSpace(string(selected)); name == "" {
			return found, nil
		}
	}
	if name != filepath.Base(name) {
		return found, fmt.Errorf("NATS context %q: the name has a path separator", name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "context", name+".json"))
	if err != nil {
		return found, fmt.Errorf("read the NATS context %q: %w", name, err)
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return found, fmt.Errorf("read the NATS context %q: %w", name, err)
	}
	return found, nil
}

// natsConfigDir is where the nats CLI keeps its contexts.
func natsConfigDir() (string, error) {
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the NATS contexts: %w", err)
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "nats"), nil
}

// options are the NATS options that the context stands for.
func (n natsContext) options() ([]nats.Option, error) {
	var opts []nats.Option
	switch {
	case n.Creds != "":
		opts = append(opts, nats.UserCredentials(expandHome(n.Creds)))
	case n.UserJWT != "" && n.UserSeed != "":
		opts = append(opts, nats.UserJWTAndSeed(n.UserJWT, n.UserSeed))
	case n.NKey != "":
		opt, err := nats.NkeyOptionFromSeed(expandHome(n.NKey))
		if err != nil {
			return nil, fmt.Errorf("read the nkey of the NATS context: %w", err)
		}
		opts = append(opts, opt)
	case n.User != "":
		opts = append(opts, nats.UserInfo(n.User, n.Password))
	case n.Token != "":
		opts = append(opts, nats.Token(n.Token))
	}
	if n.Cert != "" && n.Key != "" {
		opts = append(opts, nats.ClientCert(expandHome(n.Cert), expandHome(n.Key)))
	}
	if n.CA != "" {
		opts = append(opts, nats.RootCAs(expandHome(n.CA)))
	}
	if n.TLSFirst {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	if n.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(n.InboxPrefix))
	}
	return opts, nil
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
