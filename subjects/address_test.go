package subjects

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const testUser = "UBTFKYG3DUXBH2ZQGDJQ6KJZ7YP5VHCB5ZKZQCQ7JZX6Y3D2Q6VQZK5A"

func TestParseAddress(t *testing.T) {
	tests := []struct {
		subject string
		want    Address
		err     error
	}{
		// "locks.<op>.<user>: any node", "locks.<op>: the same, caller unnamed".
		{"locks.acquire.U1", Address{Path: Simple, Op: OpAcquire, User: "U1"}, nil},
		{"locks.session-open.U1", Address{Path: Simple, Op: OpSessionOpen, User: "U1"}, nil},
		{"locks.query", Address{Path: Unnamed, Op: OpQuery, User: "anyone"}, nil},
		{"locks.force.U1", Address{Path: Simple, Op: OpForce, User: "U1"}, nil},
		// "not for force"
		{"locks.force", Address{Path: Unnamed, Op: OpForce, User: "anyone"}, ErrUnnamed},

		// "locks.b.<bucket>.<op>.<user>: the primary of the bucket", "in decimal".
		{"locks.b.0.acquire.U1", Address{Path: Hot, Op: OpAcquire, User: "U1"}, nil},
		{"locks.b.1023.release.U1", Address{Path: Hot, Bucket: 1023, Op: OpRelease, User: "U1"}, nil},
		{"locks.b.4294967295.query.U1", Address{Path: Hot, Bucket: 1<<32 - 1, Op: OpQuery, User: "U1"}, nil},
		{"locks.b.7.session-close.U1", Address{Path: Hot, Bucket: 7, Op: OpSessionClose, User: "U1"}, nil},
		{"locks.b.4294967296.query.U1", Address{}, ErrSubject},
		{"locks.b.01.query.U1", Address{}, ErrSubject},
		{"locks.b.+1.query.U1", Address{}, ErrSubject},
		{"locks.b.-1.query.U1", Address{}, ErrSubject},
		{"locks.b.x.query.U1", Address{}, ErrSubject},
		{"locks.b.1.query", Address{}, ErrSubject},
		{"locks.b.1", Address{}, ErrSubject},
		{"locks.b", Address{}, ErrSubject},
		{"locks.b.1.query.U1.x", Address{}, ErrSubject},
		// What is not about a bucket's locks is not on the hot path; the caller is told.
		{"locks.b.1.info.U1", Address{Path: Hot, Bucket: 1, User: "U1"}, ErrOp},
		{"locks.b.1.dance.U1", Address{Path: Hot, Bucket: 1, User: "U1"}, ErrOp},

		// "locks.keep.<user>" and "locks.keep.<node>.<user>".
		{"locks.keep.U1", Address{Path: Simple, Op: OpKeep, User: "U1"}, nil},
		{"locks.keep.N1.U1", Address{Path: KeepNode, Op: OpKeep, Node: "N1", User: "U1"}, nil},
		{"locks.acquire.N1.U1", Address{}, ErrSubject},

		{"locks.dance.U1", Address{Path: Simple, User: "U1"}, ErrOp},
		{"locks.dance", Address{Path: Unnamed, User: "anyone"}, ErrOp},
		{"locks.Acquire.U1", Address{Path: Simple, User: "U1"}, ErrOp},
		{"locks.event.cluster.up", Address{}, ErrSubject},
		{"locks.event", Address{}, ErrSubject},
		{"locks", Address{}, ErrSubject},
		{"locks.", Address{}, ErrSubject},
		{"locks.acquire.", Address{}, ErrSubject},
		{"locks..U1", Address{}, ErrSubject},
		{"lock.acquire.U1", Address{}, ErrSubject},
		{"acquire.U1", Address{}, ErrSubject},
		{"", Address{}, ErrSubject},
		{"locks.acquire.*", Address{}, ErrSubject},
		{"locks.acquire.>", Address{}, ErrSubject},
		{"locks.acquire.U 1", Address{}, ErrSubject},
		{"locks.acquire.U\r\n", Address{}, ErrSubject},
		{"locks.acquire.Ü", Address{}, ErrSubject},
	}
	for _, test := range tests {
		got, err := ParseAddress(test.subject)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("ParseAddress(%q) = %+v, %v; want %+v, %v", test.subject, got, err, test.want, test.err)
		}
	}
}

// Every request subject that the package builds is read back as what it was built from.
func TestAddressRoundTrip(t *testing.T) {
	token := rapid.StringMatching(`[A-Za-z0-9_$-]{1,60}`)
	rapid.Check(t, func(t *rapid.T) {
		want := Address{
			Path: Path(rapid.IntRange(int(Hot), int(KeepNode)).Draw(t, "path")),
			Op:   Op(rapid.IntRange(int(OpAcquire), int(opCount)-1).Draw(t, "op")),
			User: token.Draw(t, "user"),
		}
		subject := ""
		switch want.Path {
		case Hot:
			if !want.Op.OnName() {
				want.Op = OpSessionClose
			}
			want.Bucket = rapid.Uint32().Draw(t, "bucket")
			subject = HotSubject(want.Bucket, want.Op, want.User)
		case Simple:
			subject = SimpleSubject(want.Op, want.User)
		case Unnamed:
			if want.Op == OpForce {
				t.Skip("there is no such subject")
			}
			want.User = Anyone
			subject = UnnamedSubject(want.Op)
		case KeepNode:
			want.Op = OpKeep
			want.Node = token.Draw(t, "node")
			subject = KeepNodeSubject(want.Node, want.User)
		}
		if got, err := ParseAddress(subject); err != nil || got != want {
			t.Fatalf("ParseAddress(%q) = %+v, %v; want %+v", subject, got, err, want)
		}
	})
}

func TestParseAddressDoesNotAllocate(t *testing.T) {
	subjects := []string{HotSubject(17, OpAcquire, testUser), SimpleSubject(OpQuery, testUser), KeepNodeSubject("N1", testUser)}
	allocs := testing.AllocsPerRun(100, func() {
		for _, s := range subjects {
			if _, err := ParseAddress(s); err != nil {
				t.Error(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestBuilders(t *testing.T) {
	tests := []struct{ got, want string }{
		{HotPattern(17), "locks.b.17.*.*"},
		{HotPermission(OpAcquire, "{{subject()}}"), "locks.b.*.acquire.{{subject()}}"},
		{SimplePattern(OpSessionOpen), "locks.session-open.*"},
		{UnnamedSubject(OpPing), "locks.ping"},
		{KeepNodePattern("N1"), "locks.keep.N1.*"},
		{SessionEventSubject("U1", "AAAAAAAAAAA"), "locks.event.session.U1.AAAAAAAAAAA"},
		{LockEventSubject("granted", 17), "locks.event.lock.granted.17"},
		{ServerEventSubject("up", "N1"), "locks.event.server.up.N1"},
		{ClusterEventSubject("mode"), "locks.event.cluster.mode"},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

func TestParseEvent(t *testing.T) {
	tests := []struct {
		subject string
		want    EventAddress
		ok      bool
	}{
		{ServerEventSubject("up", "N1"), EventAddress{Family: FamilyServer, Type: "up", Node: "N1"}, true},
		{ClusterEventSubject("mode"), EventAddress{Family: FamilyCluster, Type: "mode"}, true},
		{LockEventSubject("lost", 9), EventAddress{Family: FamilyLock, Type: "lost", Bucket: 9}, true},
		{SessionEventSubject("U1", "ID"), EventAddress{Family: FamilySession, User: "U1", ID: "ID"}, true},
		{"locks.event.lock.lost.x", EventAddress{}, false},
		{"locks.event.lock.lost", EventAddress{}, false},
		{"locks.event.cluster.mode.x", EventAddress{}, false},
		{"locks.event.other.up.N1", EventAddress{}, false},
		{"locks.event.server.up.*", EventAddress{}, false},
		{"locks.event", EventAddress{}, false},
		{"locks.acquire.U1", EventAddress{}, false},
	}
	for _, test := range tests {
		got, err := ParseEvent(test.subject)
		if got != test.want || (err == nil) != test.ok || err != nil && !errors.Is(err, ErrSubject) {
			t.Errorf("ParseEvent(%q) = %+v, %v; want %+v", test.subject, got, err, test.want)
		}
	}
}

func TestValidReply(t *testing.T) {
	tests := []struct {
		reply, user string
		shared      bool
		want        bool
	}{
		// "The reply subject must be below _INBOX.<user>."
		{"_INBOX.U1.x", "U1", false, true},
		{"_INBOX.U1.x.y.z", "U1", false, true},
		{"_INBOX.U1", "U1", false, false},
		{"_INBOX.U1.", "U1", false, false},
		{"_INBOX.U12.x", "U1", false, false},
		{"_INBOX.U123.x", "U1", false, false},
		{"_INBOX.U2.x", "U1", false, false},
		{"_INBOX.x", "U1", false, false},
		{"_INBOX..x", "", false, false},
		{"_INBOX.*.x", "*", false, false},
		// "(open zone: _INBOX.)"
		{"_INBOX.x", "anyone", true, true},
		{"_INBOX.U2.x", "U1", true, true},
		{"_INBOX.", "anyone", true, false},
		{"_INBOX", "anyone", true, false},
		{"_INBOXES.x", "anyone", true, false},

		{"", "anyone", true, false},
		{"locks.b.3.release.U1", "U1", true, false},
		{"locks.event.cluster.up", "U1", true, false},
		{"$SYS.REQ.ACCOUNT.PING", "U1", true, false},
		{"_INBOX.U1.*", "U1", false, false},
		{"_INBOX.U1.>", "U1", false, false},
		{"_INBOX.U1.x..y", "U1", false, false},
		{"_INBOX.U1.x y", "U1", false, false},
		{"_INBOX.U1.x\r\nPUB y", "U1", false, false},
		{"_INBOX.U1.x\x00", "U1", false, false},
		{"_INBOX.U1." + strings.Repeat("x", 502), "U1", false, true},
		{"_INBOX.U1." + strings.Repeat("x", 503), "U1", false, false},
	}
	for _, test := range tests {
		if got := ValidReply(test.reply, test.user, test.shared); got != test.want {
			t.Errorf("ValidReply(%q, %q, %v) = %v", test.reply, test.user, test.shared, got)
		}
	}
}

// What is accepted as an address is built again byte for byte.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		HotSubject(17, OpAcquire, testUser), SimpleSubject(OpForce, Anyone), UnnamedSubject(OpInfo), KeepNodeSubject("N1", "U1"),
		SessionEventSubject("U1", "AAAAAAAAAAA"), LockEventSubject("granted", 17), ServerEventSubject("up", "N1"),
		ClusterEventSubject("mode"), "locks.b.007.acquire.U1", "locks..", "_INBOX.U1.x", "locks.acquire.*",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if a, err := ParseAddress(subject); err == nil {
			built := map[Path]string{
				Hot:      HotSubject(a.Bucket, a.Op, a.User),
				Simple:   SimpleSubject(a.Op, a.User),
				Unnamed:  UnnamedSubject(a.Op),
				KeepNode: KeepNodeSubject(a.Node, a.User),
			}[a.Path]
			if built != subject || !ValidToken(a.User) {
				t.Fatalf("%q is read as %+v, which is %q", subject, a, built)
			}
		}
		if e, err := ParseEvent(subject); err == nil {
			built := map[EventFamily]string{
				FamilyServer:  ServerEventSubject(e.Type, e.Node),
				FamilyCluster: ClusterEventSubject(e.Type),
				FamilyLock:    LockEventSubject(e.Type, e.Bucket),
				FamilySession: SessionEventSubject(e.User, e.ID),
			}[e.Family]
			if built != subject {
				t.Fatalf("%q is read as %+v, which is %q", subject, e, built)
			}
		}
		if ValidReply(subject, "U1", false) && !ValidReply(subject, "U1", true) {
			t.Fatalf("%q is valid alone, but not shared", subject)
		}
	})
}
