package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// CheckNew says whether a node with this data directory can be let into the cluster with that public curve key:
// ErrExists if it is in a cluster already, or if it has keys or locks of its own, which would be lost. A directory in which
// an earlier try was cut short can.
func CheckNew(data, curveKey string) error {
	if _, err := os.Lstat(filepath.Join(tlsDir(data), authorityFile)); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return fmt.Errorf("look at the data directory: %w", err)
		}
		return fmt.Errorf("%s belongs to a cluster: %w: the token is not needed", data, ErrExists)
	}
	for _, name := range []string{"journal", "control.db"} {
		if _, err := os.Lstat(filepath.Join(data, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s has the locks of a daemon that ran alone (%s): %w: join with an empty directory",
				data, name, ErrExists), err)
		}
	}
	auth, err := ReadAuth(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	key := ""
	if auth.current().Curve != "" {
		if key, err = auth.CurveKey(); err != nil {
			return err
		}
	}
	if key != curveKey {
		return fmt.Errorf("%s: %w: join with an empty directory", auth.File(), ErrForeign)
	}
	return nil
}

// Enter writes what makes a node one of the cluster into its data directory. The authority's certificate comes last, and
// the directory belongs to no cluster without it: whatever happens before, Enter can be tried again.
func (m Membership) Enter(data, node string) (*Identity, error) {
	authority, err := m.check()
	if err != nil {
		return nil, err
	}
	key, err := m.curveKey()
	if err != nil {
		return nil, err
	}
	if err := makeDir(data, tlsDir(data)); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	if err := CheckNew(data, key); err != nil {
		return nil, err
	}
	if err := writeFile((&Auth{dir: data}).File(), m.Auth, secret); err != nil {
		return nil, fmt.Errorf("write the authentication file: %w", err)
	}
	if err := SaveRoutes(data, m.Routes); err != nil {
		return nil, err
	}
	identity := &Identity{node: node, dir: tlsDir(data), authority: authority}
	if err := identity.renew(time.Now()); err != nil {
		return nil, err
	}
	if err := createFile(filepath.Join(tlsDir(data), authorityFile), m.Authority, secret); err != nil {
		return nil, fmt.Errorf("write the certificate of the cluster: %w", err)
	}
	return identity, nil
}

// check refuses a membership with which a daemon could not start.
func (m Membership) check() (*Authority, error) {
	if _, err := m.state(); err != nil {
		return nil, fmt.Errorf("the cluster's keys: %w", err)
	}
	authority, err := ParseAuthority(m.Authority)
	if err != nil {
		return nil, fmt.Errorf("the cluster's certificate: %w", err)
	}
	for node, addresses := range m.Routes {
		if err := CheckNodeID(node); err != nil {
			return nil, err
		}
		for _, address := range addresses {
			if err := checkReachable(address); err != nil {
				return nil, fmt.Errorf("address of node %s: %w", node, err)
			}
		}
	}
	return authority, nil
}

func (m Membership) state() (*authState, error) {
	var s authState
	if err := json.Unmarshal(m.Auth, &s); err != nil {
		return nil, err
	}
	if s.Curve == "" {
		return nil, errors.New("curve: the key is missing")
	}
	return &s, s.check()
}

func (m Membership) curveKey() (string, error) {
	s, err := m.state()
	if err != nil {
		return "", err
	}
	return (&Auth{state: s}).CurveKey()
}
