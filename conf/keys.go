package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one thing that can be set as text in a T: settings, a zone, a quota.
type field[T any] struct {
	name string // as in the file; with - for _ the flag; in capitals after OCLOCKS_ the environment variable
	kind string // what the help shows for the value: string, duration, bool, …
	help string
	many bool // values with commas between them; in the file it may be a list too
	get  func(*T) string
	set  func(*T, string) error
}

// settingFields is the one table of what can be set for a daemon. Flags, environment variables, keys of the file and the
// help text come from it.
var settingFields = []field[Settings]{
	text("listen", "host:port", "address for NATS clients", func(s *Settings) *string { return &s.Listen }),
	text("http", "host:port", "address for health and metrics; off for none", func(s *Settings) *string { return &s.HTTP }),
	text("data", "dir", "directory for the journal and the keys; nothing outlives the daemon without it",
		func(s *Settings) *string { return &s.Data }),
	text("node", "name", "name of this node, for people", func(s *Settings) *string { return &s.Node }),
	text("location", "path", "where this node is, such as eu/fra/rack7", func(s *Settings) *string { return &s.Location }),
	text("cluster", "name", "name of the cluster", func(s *Settings) *string { return &s.Cluster }),
	text("cluster_listen", "host:port", "address for the other daemons of the cluster; nobody can join without it",
		func(s *Settings) *string { return &s.ClusterListen }),
	text("cluster_advertise", "host:port", "where the other daemons reach cluster_listen, if it is another address",
		func(s *Settings) *string { return &s.ClusterAdvertise }),
	text("direct_listen", "host:port", "address for direct links from the other daemons, a faster way beside cluster_listen; off for none",
		func(s *Settings) *string { return &s.DirectListen }),
	text("direct_advertise", "host:port", "where the other daemons reach direct_listen, if it is another address",
		func(s *Settings) *string { return &s.DirectAdvertise }),
	list("join", "host:port,…", "daemons to join: their cluster_listen, or a DNS name that has all of their addresses",
		func(s *Settings) *[]string { return &s.Join }),
	{
		name: "found", kind: "bool", help: "may begin a new cluster; true unless there is a cluster to join",
		get: func(s *Settings) string { return strconv.FormatBool(s.MayFound()) },
		set: func(s *Settings, v string) error {
			b, err := parseBool(v)
			s.Found = &b
			return err
		},
	},
	text("join_token", "token", "token, or @FILE of one, with which a new node joins the first time",
		func(s *Settings) *string { return &s.Token }),
	count("priority", "1, the first choice to lead and to be primary, to 15, the last resort",
		func(s *Settings) *int { return &s.Priority }),
	count("min_quorum", "new cluster: daemons that must be there before new locks are given",
		func(s *Settings) *int { return &s.MinQuorum }),
	duration("node_lease", "new cluster: how long a node may act without hearing from the leader",
		func(s *Settings) *time.Duration { return &s.NodeLease }),
	text("acks", "copies", "new cluster: who has a change before it is answered: first (secondary), majority or all",
		func(s *Settings) *string { return &s.Acks }),
	count("voters", "new cluster: how many daemons vote: 1, 3, 5, 7 or 9", func(s *Settings) *int { return &s.Voters }),
	text("log_level", "level", "debug, info, warn or error", func(s *Settings) *string { return &s.LogLevel }),
	text("log_format", "format", "text or json", func(s *Settings) *string { return &s.LogFormat }),
	{
		name: "buckets", kind: "number", help: "number of buckets, a power of two",
		get: func(s *Settings) string { return strconv.FormatUint(uint64(s.Buckets), 10) },
		set: func(s *Settings, v string) error {
			n, err := strconv.ParseUint(v, 10, 32)
			if err != nil {
				return fmt.Errorf("%q is not a number: expected a power of two from 1 to %d", v, MaxBuckets)
			}
			s.Buckets = uint32(n)
			return nil
		},
	},
	duration("max_lease", "longest lease that a client gets", func(s *Settings) *time.Duration { return &s.MaxLease }),
	duration("session_lease", "lease of a session that asks for none", func(s *Settings) *time.Duration { return &s.SessionLease }),
	text("sync", "when", "when the journal reaches the disk: background or always (before each answer)",
		func(s *Settings) *string { return &s.Sync }),
	boolean("hide_servers", "clients do not learn the addresses of the nodes", func(s *Settings) *bool { return &s.HideServers }),
	boolean("allow_open_zone_on_any_address", "serve an open zone to everybody who reaches the address",
		func(s *Settings) *bool { return &s.AllowOpen }),
}

// zoneFields are the keys of one entry of zones: in the file; quota is a mapping of its own.
var zoneFields = []field[Zone]{
	text("name", "name", "name of the zone", func(z *Zone) *string { return &z.Name }),
	boolean("open", "connections without credentials land here", func(z *Zone) *bool { return &z.Open }),
	{
		name: "role", kind: "role", help: "open zone: role of those who come without credentials",
		get: func(z *Zone) string { return string(z.Role) },
		set: func(z *Zone, v string) (err error) { z.Role, err = ParseRole(v); return err },
	},
	{
		name: "unnamed", kind: "bool", help: "take requests to locks.<op>, without a user",
		get: func(z *Zone) string { return strconv.FormatBool(z.TakesUnnamed()) },
		set: func(z *Zone, v string) error {
			b, err := parseBool(v)
			z.Unnamed = &b
			return err
		},
	},
	boolean("shared_inboxes", "users may read each other's replies", func(z *Zone) *bool { return &z.SharedInboxes }),
	boolean("lock_events", "publish what happens to locks", func(z *Zone) *bool { return &z.LockEvents }),
}

var quotaFields = []field[Quota]{
	count("holds", "locks held", func(q *Quota) *int { return &q.Holds }),
	count("waiters", "requests in queues", func(q *Quota) *int { return &q.Waiters }),
	count("sessions", "sessions", func(q *Quota) *int { return &q.Sessions }),
	count("connections", "connections of clients", func(q *Quota) *int { return &q.Connections }),
}

func text[T any](name, kind, help string, at func(*T) *string) field[T] {
	return field[T]{
		name: name, kind: kind, help: help,
		get: func(t *T) string { return *at(t) },
		set: func(t *T, v string) error { *at(t) = v; return nil },
	}
}

func boolean[T any](name, help string, at func(*T) *bool) field[T] {
	return field[T]{
		name: name, kind: "bool", help: help,
		get: func(t *T) string { return strconv.FormatBool(*at(t)) },
		set: func(t *T, v string) (err error) { *at(t), err = parseBool(v); return err },
	}
}

func duration[T any](name, help string, at func(*T) *time.Duration) field[T] {
	return field[T]{
		name: name, kind: "duration", help: help,
		get: func(t *T) string { return at(t).String() },
		set: func(t *T, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil {
				return fmt.Errorf("%q is not a duration: expected for example 500ms, 10s or 1m30s", v)
			}
			*at(t) = d
			return nil
		},
	}
}

func count[T any](name, help string, at func(*T) *int) field[T] {
	return field[T]{
		name: name, kind: "number", help: help,
		get: func(t *T) string { return strconv.Itoa(*at(t)) },
		set: func(t *T, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%q is not a number", v)
			}
			*at(t) = n
			return nil
		},
	}
}

// list is several values, with commas between them; in the file it may be a list too.
func list[T any](name, kind, help string, at func(*T) *[]string) field[T] {
	return field[T]{
		name: name, kind: kind, help: help, many: true,
		get: func(t *T) string { return strings.Join(*at(t), ",") },
		set: func(t *T, v string) error {
			var values []string
			if v == "" {
				*at(t) = nil
				return nil
			}
			for value := range strings.SplitSeq(v, ",") {
				if value = strings.TrimSpace(value); value == "" {
					return fmt.Errorf("%q has an empty entry: expected values with commas between them", v)
				}
				values = append(values, value)
			}
			*at(t) = values
			return nil
		},
	}
}

func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", v)
}

// flagName and envName are how a key of the file is written elsewhere.
func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }
func envName(key string) string  { return "OCLOCKS_" + strings.ToUpper(key) }

// find gives the field of that name, or a *KeyError that names the nearest one.
func find[T any](table []field[T], name string) (field[T], error) {
	i := slices.IndexFunc(table, func(f field[T]) bool { return f.name == name })
	if i < 0 {
		names := make([]string, len(table))
		for i, f := range table {
			names[i] = f.name
		}
		return field[T]{}, unknownKey(name, names)
	}
	return table[i], nil
}

func unknownKey(name string, known []string) *KeyError {
	e := &KeyError{Key: shorten(name), Problem: "there is no such key"}
	if near := nearest(name, known); near != "" {
		e.Fix = "did you mean " + near + "?"
	} else {
		e.Fix = "the keys are " + strings.Join(known, ", ")
	}
	return e
}

// shorten keeps an error message readable.
func shorten(name string) string {
	if len(name) > MaxNameLen {
		return name[:MaxNameLen] + "…"
	}
	return name
}

// nearest is the known name that is a typing mistake or two away from name, "" if none is near.
func nearest(name string, known []string) string {
	best, at := "", 1+max(1, (len(name)+1)/3)
	if len(name) > MaxNameLen { // nobody types that for one of ours
		return ""
	}
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, k := range known {
		if d := editDistance(name, k); d < at {
			best, at = k, d
		}
	}
	return best
}

// editDistance counts the characters to insert, delete or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// Keys are the names of all settings that are one value, as the file spells them.
func Keys() []string {
	names := make([]string, len(settingFields))
	for i, f := range settingFields {
		names[i] = f.name
	}
	return names
}

// Get is the value of one setting as text, by its name in the file. The error is a *KeyError.
func (s *Settings) Get(key string) (string, error) {
	f, err := find(settingFields, key)
	if err != nil {
		return "", err
	}
	return f.get(s), nil
}
