package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

const (
	authFile = "auth.json"
	maxAuth  = 64 << 20 // bytes of auth.json
)

// OpenAuth reads auth.json in the directory, or makes the directory and the file, with fresh keys. ErrUnsafeFile if
// others than the owner can read the file.
func OpenAuth(dir string) (*Auth, error) {
	a, err := ReadAuth(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	state, err := newState()
	if err != nil {
		return nil, err
	}
	content, err := encodeAuth(state)
	if err != nil {
		return nil, err
	}
	// If another process is faster, its keys are the keys.
	if err := createFile(filepath.Join(dir, authFile), content, secret); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write the authentication file: %w", err)
	}
	return ReadAuth(dir)
}

// ReadAuth is OpenAuth for a file that must be there: an fs.ErrNotExist otherwise.
func ReadAuth(dir string) (*Auth, error) {
	a := &Auth{dir: dir}
	state, err := readAuth(a.File())
	if err != nil {
		return nil, err
	}
	a.state = state
	return a, nil
}

// Reload reads the file again, to learn what another process (oclocks-config) has changed. In memory it does nothing.
func (a *Auth) Reload() error {
	if a.dir == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	state, err := readAuth(a.File())
	if err != nil {
		return err
	}
	if a.state != nil && (state.Operator != a.state.Operator || state.System != a.state.System || state.Nodes != a.state.Nodes ||
		a.state.Curve != "" && state.Curve != a.state.Curve) {
		return fmt.Errorf("%s has another operator's keys than at the start: restart the daemon to use them", a.File())
	}
	a.state = state
	return nil
}

// change carries out do on a copy of the newest state and keeps it if do succeeds.
func (a *Auth) change(do func(*authState) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == "" {
		next := a.state.clone()
		if err := do(next); err != nil {
			return err
		}
		a.state = next
		return nil
	}
	return a.underLock(func() error {
		next, err := readAuth(a.File())
		if err != nil {
			return err
		}
		if err := do(next); err != nil {
			return err
		}
		content, err := encodeAuth(next)
		if err != nil {
			return err
		}
		if err := writeFile(a.File(), content, secret); err != nil {
			return fmt.Errorf("write the authentication file: %w", err)
		}
		a.state = next
		return nil
	})
}

// underLock excludes other processes that change the file.
func (a *Auth) underLock(do func() error) error {
	unlock, err := lockFile(a.File())
	if err != nil {
		return fmt.Errorf("lock the authentication file: %w", err)
	}
	return errors.Join(do(), unlock())
}

func encodeAuth(s *authState) ([]byte, error) {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the authentication file: %w", err)
	}
	return append(content, '\n'), nil
}

func readAuth(path string) (*authState, error) {
	content, err := readSecret(path, maxAuth)
	if err != nil {
		return nil, fmt.Errorf("read the authentication file: %w", err)
	}
	var s authState
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from a backup", path, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from a backup", path, err)
	}
	return &s, nil
}

// check refuses a state in which a key is missing or is not what it should be.
func (s *authState) check() error {
	if s.Version != 1 {
		return fmt.Errorf("version %d is unknown, expected 1", s.Version)
	}
	if len(s.Secret) != SecretLen {
		return fmt.Errorf("the secret has %d bytes, expected %d", len(s.Secret), SecretLen)
	}
	if err := checkSeed(s.Operator, nkeys.PrefixByteOperator); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if s.Curve != "" {
		if _, err := nkeys.FromCurveSeed([]byte(s.Curve)); err != nil {
			return errors.New("curve: the key is not valid")
		}
	}
	if s.Zones == nil {
		s.Zones = map[string]*zoneKeys{}
	}
	seeds := map[string]string{"system": s.System, "nodes": s.Nodes}
	for name, z := range s.Zones {
		if err := CheckZoneName(name); err != nil {
			return err
		}
		if z == nil {
			return fmt.Errorf("zone %s has no keys", name)
		}
		seeds["zone "+name] = z.Account
		seeds["zone "+name+", open"] = z.Open
		for _, r := range Roles() {
			seeds["zone "+name+", "+string(r)] = z.Roles[r]
		}
	}
	for what, seed := range seeds {
		if err := checkSeed(seed, nkeys.PrefixByteAccount); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// checkSeed says nothing of the seed itself, so that no error message ever holds one.
func checkSeed(seed string, kind nkeys.PrefixByte) error {
	if prefix, _, err := nkeys.DecodeSeed([]byte(seed)); err != nil || prefix != kind {
		return errors.New("the key is missing or not valid")
	}
	return nil
}
