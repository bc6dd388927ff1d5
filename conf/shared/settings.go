package shared

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// Settings are those that all nodes share.
type Settings struct {
	NodeLease    time.Duration // how long a node may act without hearing from the leader
	GiveUp       time.Duration // after the end of its lease a node counts as one that does not come back
	MaxLease     time.Duration // longest lease that a client gets
	SessionLease time.Duration // lease of a session that asks for none
	Acks         chain.Acks    // whose confirmation an answer needs
	Sync         string        // conf.SyncBackground or conf.SyncAlways
	MinQuorum    int           // with fewer live nodes nothing is granted
	Voters       int           // how many nodes vote about the control plane, an odd number
	Copies       int           // of each bucket; 0: one on every node
	HideServers  bool          // clients do not learn the other nodes' addresses
	Balance      bool          // buckets are spread evenly over the nodes
}

// DefaultSettings are those of a new cluster.
func DefaultSettings() Settings {
	return Settings{
		NodeLease: 800 * time.Millisecond, GiveUp: 10 * time.Second, MaxLease: time.Minute, SessionLease: 10 * time.Second,
		Acks: chain.First, Sync: conf.SyncBackground, MinQuorum: 1, Voters: 5, Balance: true,
	}
}

// setting is one value that can be set as text.
type setting struct {
	key  string
	want string // what is expected, for messages and help
	help string
	get  func(*Settings) string
	set  func(*Settings, string) error
}

var acksNames = []string{chain.First.String(), chain.Majority.String(), chain.All.String()}

var settings = []setting{
	length("node_lease", conf.MinNodeLease, conf.MaxNodeLease, "how long a node may act without hearing from the leader; chosen when the cluster is founded",
		func(s *Settings) *time.Duration { return &s.NodeLease }),
	length("give_up", time.Second, 24*time.Hour, "how long after the end of its lease a node counts as lost, so that a bucket goes on without what only it had",
		func(s *Settings) *time.Duration { return &s.GiveUp }),
	length("max_lease", conf.MinLease, conf.LeaseLimit, "longest lease that a client gets",
		func(s *Settings) *time.Duration { return &s.MaxLease }),
	length("session_lease", conf.MinLease, conf.LeaseLimit, "lease of a session that asks for none, at most max_lease",
		func(s *Settings) *time.Duration { return &s.SessionLease }),
	{
		key: "acks", want: "first, majority or all", help: "which copies confirm a change before it is answered",
		get: func(s *Settings) string { return s.Acks.String() },
		set: func(s *Settings, v string) error {
			i := slices.Index(acksNames, v)
			if i < 0 {
				return fmt.Errorf("%q is unknown", shorten(v))
			}
			s.Acks = chain.Acks(i)
			return nil
		},
	},
	{
		key: "sync", want: "background or always", help: "when the journals reach the disks",
		get: func(s *Settings) string { return s.Sync },
		set: func(s *Settings, v string) error {
			if v != conf.SyncBackground && v != conf.SyncAlways {
				return fmt.Errorf("%q is unknown", shorten(v))
			}
			s.Sync = v
			return nil
		},
	},
	amount("min_quorum", 1, MaxNodes, "with fewer live nodes nothing is granted", func(s *Settings) *int { return &s.MinQuorum }),
	{
		key: "voters", want: "1, 3, 5, 7 or 9", help: "how many nodes vote about the control plane",
		get: func(s *Settings) string { return strconv.Itoa(s.Voters) },
		set: func(s *Settings, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > 9 || n%2 == 0 {
				return fmt.Errorf("%q is not one of them", shorten(v))
			}
			s.Voters = n
			return nil
		},
	},
	amount("copies", 0, MaxNodes, "copies of each bucket; 0 for one on every node", func(s *Settings) *int { return &s.Copies }),
	flag("hide_servers", "clients do not learn the addresses of the nodes", func(s *Settings) *bool { return &s.HideServers }),
	flag("balance", "spread the buckets evenly over the nodes", func(s *Settings) *bool { return &s.Balance }),
}

func length(key string, low, high time.Duration, help string, at func(*Settings) *time.Duration) setting {
	return setting{
		key: key, want: low.String() + " to " + high.String(), help: help,
		get: func(s *Settings) string { return at(s).String() },
		set: func(s *Settings, v string) error {
			d, err := time.ParseDuration(v)
			switch {
			case err != nil:
				return fmt.Errorf("%q is not a duration", shorten(v))
			case d < low || d > high:
				return fmt.Errorf("%s is out of range", d)
			}
			*at(s) = d
			return nil
		},
	}
}

func amount(key string, low, high int, help string, at func(*Settings) *int) setting {
	return setting{
		key: key, want: fmt.Sprintf("%d to %d", low, high), help: help,
		get: func(s *Settings) string { return strconv.Itoa(*at(s)) },
		set: func(s *Settings, v string) error {
			n, err := strconv.Atoi(v)
			switch {
			case err != nil:
				return fmt.Errorf("%q is not a number", shorten(v))
			case n < low || n > high:
				return fmt.Errorf("%d is out of range", n)
			}
			*at(s) = n
			return nil
		},
	}
}

func flag(key, help string, at func(*Settings) *bool) setting {
	return setting{
		key: key, want: "true or false", help: help,
		get: func(s *Settings) string { return strconv.FormatBool(*at(s)) },
		set: func(s *Settings, v string) error {
			switch v {
			case "true":
				*at(s) = true
			case "false":
				*at(s) = false
			default:
				return fmt.Errorf("%q is neither true nor false", shorten(v))
			}
			return nil
		},
	}
}

// Keys are the names of all settings, in the order in which they are shown.
func Keys() []string {
	keys := make([]string, len(settings))
	for i, f := range settings {
		keys[i] = f.key
	}
	return keys
}

// Help says what a setting is for and which values it takes; "", "" for one that does not exist.
func Help(key string) (help, values string) {
	if i := settingAt(key); i >= 0 {
		return settings[i].help, settings[i].want
	}
	return "", ""
}

func settingAt(key string) int {
	return slices.IndexFunc(settings, func(f setting) bool { return f.key == key })
}

// Get is the value of a setting as text. ErrNotFound if there is no such setting.
func (s *Settings) Get(key string) (string, error) {
	i := settingAt(key)
	if i < 0 {
		return "", noSetting(key)
	}
	return settings[i].get(s), nil
}

// Set changes one setting, without looking at the others: see Validate. Errors: ErrNotFound, ErrValue.
func (s *Settings) Set(key, value string) error {
	i := settingAt(key)
	if i < 0 {
		return noSetting(key)
	}
	if err := settings[i].set(s, value); err != nil {
		return fmt.Errorf("%w: %s: %w: expected %s", ErrValue, key, err, settings[i].want)
	}
	return nil
}

// Validate refuses settings that do not fit each other: ErrValue.
func (s *Settings) Validate() error {
	if s.SessionLease > s.MaxLease {
		return fmt.Errorf("%w: session_lease: %s is more than max_lease, which is %s", ErrValue, s.SessionLease, s.MaxLease)
	}
	return nil
}

// setAll changes several, all or none.
func (s Settings) setAll(values map[string]string) (Settings, error) {
	for _, key := range sortedKeys(values) {
		if err := s.Set(key, values[key]); err != nil {
			return Settings{}, err
		}
	}
	return s, s.Validate()
}

// all are the values of all settings as text.
func (s *Settings) all() map[string]string {
	m := make(map[string]string, len(settings))
	for _, f := range settings {
		m[f.key] = f.get(s)
	}
	return m
}

func noSetting(key string) error {
	return fmt.Errorf("setting %s: %w: the settings are %s", shorten(key), ErrNotFound, strings.Join(Keys(), ", "))
}

// shorten keeps a message readable.
func shorten(text string) string {
	if len(text) > conf.MaxNameLen {
		return strings.ToValidUTF8(text[:conf.MaxNameLen], "") + "…"
	}
	return text
}
