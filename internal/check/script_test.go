package check_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// TestHistories runs the histories of testdata/histories. Each file has, for one promise, histories that break it and near misses that do not.
// A line is an event: its time in milliseconds, the client (of zone z, or zone/client), the kind or the operation asked for, the
// request, the lock's name, and fields. What is found is the expectation.
func TestHistories(t *testing.T) {
	datadriven.Walk(t, "testdata/histories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			opt := check.Options{Wild: d.HasArg("wild")}
			if d.HasArg("maxlease") {
				var ms int64
				d.ScanArgs(t, "maxlease", &ms)
				opt.MaxLease = time.Duration(ms) * time.Millisecond
			}
			k := check.New(opt)
			for line := range strings.Lines(d.Input) {
				line, _, _ = strings.Cut(line, "#")
				if words := strings.Fields(line); len(words) > 0 {
					e, err := scriptEvent(words)
					if err != nil {
						d.Fatalf(t, "%q: %v", line, err)
					}
					k.Add(e)
				}
			}
			k.End(0, d.HasArg("settled"))
			var found strings.Builder
			for _, v := range k.Violations() {
				fmt.Fprintln(&found, v)
			}
			if found.Len() == 0 {
				return "nothing is wrong\n"
			}
			return found.String()
		})
	})
}

// scriptEvent reads a line: "20 a answer r1 token=7". An operation in place of the kind is an Ask.
func scriptEvent(words []string) (*check.Event, error) {
	at, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || len(words) < 3 {
		return nil, fmt.Errorf("not: time client kind …")
	}
	e := &check.Event{At: at * 1e6, Zone: "z", Client: words[1]}
	if zone, client, ok := strings.Cut(words[1], "/"); ok {
		e.Zone, e.Client = zone, client
	}
	rest := words[3:]
	next := func() (word string) {
		if len(rest) > 0 && !strings.Contains(rest[0], "=") {
			word, rest = rest[0], rest[1:]
		}
		return word
	}
	if op, ok := subjects.ParseOp(words[2]); ok {
		e.Kind, e.Op = check.Ask, op
		e.Request = next()
		e.Name = next()
	} else {
		for k := check.Ask; k.String() != ""; k++ {
			if k.String() == words[2] {
				e.Kind = k
			}
		}
		switch e.Kind {
		case check.None:
			return nil, fmt.Errorf("no kind %q", words[2])
		case check.Answer, check.GiveUp:
			e.Request = next()
			if e.Kind == check.Answer {
				e.Code = 200
			}
		default:
			e.Name = next()
		}
	}
	for _, word := range rest {
		if err := scriptField(e, word); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func scriptField(e *check.Event, word string) error {
	field, value, _ := strings.Cut(word, "=")
	n, _ := strconv.ParseInt(value, 10, 64) // 0 where it is no number
	span := time.Duration(n) * time.Millisecond
	switch field {
	case "token":
		e.Token = uint64(n)
	case "ticket":
		e.Ticket = uint64(n)
	case "key":
		e.Key = uint64(n)
	case "code":
		e.Code = int(n)
	case "why":
		e.Why = value
	case "reason":
		e.Reason = value
	case "was":
		e.Was = value
	case "of":
		e.Of = value
	case "incarnation":
		e.Incarnation = uint64(n)
	case "place":
		e.Place = value
	case "session":
		e.Session = value
	case "ttl":
		e.TTL = span
	case "lease":
		e.Lease = span
	case "grace":
		e.Grace = span
	case "wait":
		e.Wait = span
	case "until":
		e.Until = n * 1e6
		if value == "never" {
			e.Until = check.Never
		}
	case "since":
		e.Since = n * 1e6
	case "mode":
		e.Mode = map[string]subjects.Mode{"shared": subjects.Shared, "semaphore": subjects.Semaphore}[value]
	case "drain":
		e.Drain = map[string]subjects.Drain{"soft": subjects.Soft, "timed": subjects.Timed}[value]
	case "take":
		e.Take = uint32(n)
	case "slots":
		e.Slots = uint32(n)
	case "plain":
		e.Plain = n == 1
	case "now":
		e.Now = n == 1
	case "ended":
		e.Ended = n == 1
	case "part":
		e.Part = n == 1
	case "current":
		e.Current = n == 1
	case "newest":
		e.Newest = uint64(n)
	case "oldest":
		e.Oldest = uint64(n)
	case "bucket":
		e.Bucket = uint32(n)
	case "buckets":
		e.Buckets = uint32(min(n, math.MaxUint32))
	case "holder": // token:client
		token, client, _ := strings.Cut(value, ":")
		n, err := strconv.ParseUint(token, 10, 64)
		e.Holders = append(e.Holders, check.Holder{Token: n, Client: client})
		return err
	case "waiter": // ticket:client
		ticket, client, _ := strings.Cut(value, ":")
		n, err := strconv.ParseUint(ticket, 10, 64)
		e.Queue = append(e.Queue, check.Waiter{Ticket: n, Client: client})
		return err
	default:
		return fmt.Errorf("no field %q", field)
	}
	return nil
}
