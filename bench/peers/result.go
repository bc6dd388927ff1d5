package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// results is what the file of --into has, among other things that are left alone.
type results struct {
	Machine string        `json:"machine"`
	Peers   []*peerResult `json:"peers"`
}

// peerResult is what is known of one peer. Each round has the yardstick of its own.
type peerResult struct {
	Key      string  `json:"key"`
	Name     string  `json:"name"`
	Version  string  `json:"version"`
	Settings string  `json:"settings"`
	Lacks    string  `json:"lacks"`
	Rounds   []round `json:"rounds"`
	Skipped  string  `json:"skipped,omitempty"`
}

type round struct {
	When  string  `json:"when"`
	Raw   figures `json:"raw"`
	Same  figures `json:"raw_same_node"`
	Peer  figures `json:"peer"`
	Error string  `json:"error,omitempty"`
}

func (r *results) of(p peer) *peerResult {
	i := slices.IndexFunc(r.Peers, func(x *peerResult) bool { return x.Key == p.Key })
	if i < 0 {
		r.Peers = append(r.Peers, &peerResult{Key: p.Key})
		i = len(r.Peers) - 1
	}
	x := r.Peers[i]
	x.Name, x.Settings, x.Lacks = p.Name, p.Settings, p.Lacks
	return x
}

// load reads a file of results; none is none.
func load(path string) (r results, rest map[string]json.RawMessage, err error) {
	rest = make(map[string]json.RawMessage)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, rest, nil
	}
	if err != nil {
		return r, nil, err
	}
	if err := json.Unmarshal(text, &rest); err != nil {
		return r, nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, rest, nil
}

// save writes the results into what else the file has.
func (r *results) save(path string, rest map[string]json.RawMessage) error {
	r.Machine = machine()
	slices.SortStableFunc(r.Peers, func(a, b *peerResult) int { return order(a.Key) - order(b.Key) })
	for name, v := range map[string]any{"machine": r.Machine, "peers": r.Peers} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		rest[name] = text
	}
	text, err := json.MarshalIndent(rest, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func order(key string) int { return slices.IndexFunc(peers, func(p peer) bool { return p.Key == key }) }

// machine says where the figures come from.
func machine() string {
	kind := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				kind = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s/%s, %s", kind, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// moduleVersion is the version of a dependency of this program.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "of unknown version"
}

func now() string { return time.Now().UTC().Format("2006-01-02 15:04 UTC") }
