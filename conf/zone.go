package conf

// Defaults and the upper bound of a zone's quotas.
const (
	DefaultHolds       = 10_000_000
	DefaultWaiters     = 1_000_000
	DefaultSessions    = 100_000
	DefaultConnections = 50_000
	maxQuota           = 1_000_000_000
)

// MaxZones is how many zones a daemon serves at most.
const MaxZones = 1000

// DefaultZone is the name of the zone that exists when none is configured.
const DefaultZone = "default"

// Quota limits what one zone may have at a time. 0 stands for the default.
type Quota struct {
	Holds       int // locks held, in all buckets
	Waiters     int // requests in queues
	Sessions    int
	Connections int // of clients
}

// WithDefaults is the quota with its zeros filled in.
func (q Quota) WithDefaults() Quota {
	fill := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&q.Holds, DefaultHolds)
	fill(&q.Waiters, DefaultWaiters)
	fill(&q.Sessions, DefaultSessions)
	fill(&q.Connections, DefaultConnections)
	return q
}

// Zone is one tenant: a NATS account of its own.
type Zone struct {
	Name string
	// Open: NATS connections without credentials land here, all as the user subjects.Anyone. At most one zone is open.
	Open bool
	// Role of those who come without credentials; "" is RoleUser. Meaningless if the zone is not open.
	Role Role
	// Unnamed: requests to locks.<op>, without a user's token, are taken. nil: in the open zone only.
	Unnamed *bool
	// SharedInboxes: users may subscribe to _INBOX.> and so read each other's replies, for clients that cannot set an
	// inbox prefix.
	SharedInboxes bool
	// LockEvents: what happens to locks is published on locks.event.lock.>.
	LockEvents bool
	Quota      Quota
}

// TakesUnnamed says whether requests without a user's token are taken.
func (z Zone) TakesUnnamed() bool {
	if z.Unnamed != nil {
		return *z.Unnamed
	}
	return z.Open
}

// OpenRole is the role of those who come without credentials, "" if the zone is not open.
func (z Zone) OpenRole() Role {
	switch {
	case !z.Open:
		return ""
	case z.Role == "":
		return RoleUser
	}
	return z.Role
}

// Validate refuses a zone that cannot be served. The error is a *KeyError.
func (z Zone) Validate() error {
	key := func(k string) string { return "zones[" + z.Name + "]." + k }
	if err := CheckZoneName(z.Name); err != nil {
		return &KeyError{Key: key("name"), Problem: err.Error()}
	}
	if z.Role != "" {
		if _, err := ParseRole(string(z.Role)); err != nil {
			return &KeyError{Key: key("role"), Problem: err.Error()}
		}
		if !z.Open {
			return &KeyError{Key: key("role"), Problem: "the zone is not open, so everybody has the role of their credentials",
				Fix: "remove the key, or set open: true"}
		}
	}
	for _, q := range []struct {
		name string
		n    int
	}{
		{"holds", z.Quota.Holds}, {"waiters", z.Quota.Waiters},
		{"sessions", z.Quota.Sessions}, {"connections", z.Quota.Connections},
	} {
		if q.n < 0 || q.n > maxQuota {
			return &KeyError{Key: key("quota." + q.name), Problem: "out of range", Fix: "expected 1 to 1000000000, or 0 for the default"}
		}
	}
	return nil
}
