package bucket

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/opencluster/oclocks/subjects"
)

// followed is a table with a replica, which applies its changes.
type followed struct {
	*load
	copy    *Table
	applied Output
	follow  bool
	number  uint64 // of the last request in a session
}

func newFollowed(b testing.TB) *followed {
	f := &followed{load: newLoad(b), copy: New(Config{Buckets: 1, Journaled: true}), follow: true}
	f.apply()
	return f
}

func (f *followed) apply() {
	f.applied.Effects = f.applied.Effects[:0]
	if err := f.copy.Apply(f.out.Change, &f.applied); err != nil {
		f.b.Fatal(err)
	}
}

// pair takes a lock and releases it, in a session as a client does that waits for each answer.
func (f *followed) pair(inSession bool) {
	for _, op := range [...]subjects.Op{subjects.OpAcquire, subjects.OpRelease} {
		r := subjects.Request{Op: op, Name: "orders/4711", Take: 1}
		f.in.Key = 7
		if op == subjects.OpRelease {
			r.Has, r.Key = subjects.HasKey, 7
		}
		if inSession {
			f.number++
			r.Number, r.Done = f.number, f.number
		} else if op == subjects.OpAcquire {
			r.Kind, r.Has, r.TTL = subjects.Static, subjects.HasTTL, time.Minute
		}
		f.request(r)
		if f.follow {
			f.apply()
		}
	}
}

// TestAllocationsOfAPair holds what a lock and its release make: on the primary the two answers, on a replica a text for each change
// and its answer, all of which live on for some seconds, and several of which are one allocation. Nothing more, however many requests are
// remembered and forgotten.
func TestAllocationsOfAPair(t *testing.T) {
	for _, inSession := range []bool{false, true} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("session=%v/replica=%v", inSession, follow), func(t *testing.T) {
				f := newFollowed(t)
				if f.follow = follow; inSession {
					f.in.Session = benchSession(1)
				}
				most := 1.0 / 5
				if follow {
					most = 1.0 / 2
				}
				for range 100 {
					f.pair(inSession)
				}
				const pairs = 100
				if got := testing.AllocsPerRun(10, func() {
					for range pairs {
						f.pair(inSession)
					}
				}); got > pairs*most {
					t.Errorf("%v allocations for %d pairs, want %v", got, pairs, pairs*most)
				}
			})
		}
	}
}

// BenchmarkApply is a pair on a replica, and before it on its primary.
func BenchmarkApply(b *testing.B) {
	for _, inSession := range []bool{false, true} {
		b.Run(fmt.Sprintf("session=%v", inSession), func(b *testing.B) {
			f := newFollowed(b)
			if inSession {
				f.in.Session = benchSession(1)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.pair(inSession)
			}
		})
	}
}

// TestAReplicaKeepsNoChange: the effects of a change that a table applies have parts of one text, and what the table itself keeps is its own:
// else a name of some bytes would keep a whole change.
func TestAReplicaKeepsNoChange(t *testing.T) {
	f := newFollowed(t)
	seen := 0
	for i := range 60 {
		f.in.User, f.in.Session, f.in.Key = fmt.Sprint("user-", i%3), Session{}, benchKey(i)
		switch r := (subjects.Request{Op: subjects.OpAcquire, Take: 1, Holder: fmt.Sprint("holder ", i%7)}); i % 4 {
		case 0:
			r.Name, r.RequestID = fmt.Sprint("orders/with/a/name/that/is/rather/long/", i), fmt.Sprint("id-", i)
			f.request(r)
		case 1:
			f.request(subjects.Request{Op: subjects.OpRelease, Name: fmt.Sprint("orders/with/a/name/that/is/rather/long/", i-1),
				Has: subjects.HasKey, Key: benchKey(i - 1), RequestID: fmt.Sprint("id-", i), Outcome: "done"})
		default:
			f.in.Session = benchSession(i % 5)
			f.in.User = fmt.Sprint("user of ", f.in.Session.ID)
			f.number++
			r.Name, r.Number, r.Wait, r.Data = "wanted", f.number, time.Hour, []byte("data")
			f.request(r)
		}
		f.apply()
		for _, e := range f.applied.Effects {
			if e.To == "" {
				continue
			}
			seen++
			begin := uintptr(unsafe.Pointer(unsafe.StringData(e.To))) - uintptr(bytes.Index(f.out.Change, []byte(e.To)))
			texts(reflect.ValueOf(f.copy), map[uintptr]bool{}, func(text string) {
				at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
				if text != "" && at >= begin && at < begin+uintptr(len(f.out.Change)) {
					t.Fatalf("the table keeps %q of change %d", text, i)
				}
			})
		}
		if err := verify(f.copy); err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("no effect has shown a text")
	}
	if got, want := string(f.copy.AppendSnapshot(nil)), string(f.table.AppendSnapshot(nil)); got != want {
		t.Errorf("the replica is\n%s\nnot\n%s", f.copy.Describe(), f.table.Describe())
	}
}

// TestAPrimaryKeepsNoRequest: names and reply subjects of requests may be parts of longer texts, so a table that keeps one has a copy.
func TestAPrimaryKeepsNoRequest(t *testing.T) {
	f := newFollowed(t)
	type memory struct {
		begin, end uintptr
		text       string
	}
	var given []memory
	give := func(text string) string {
		text = strings.Clone(text)
		begin := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		given = append(given, memory{begin, begin + uintptr(len(text)), text})
		return text
	}
	for i := range 90 {
		r := subjects.Request{Op: subjects.OpAcquire, Take: 1, RequestID: fmt.Sprint("id-", i)}
		f.in.Session, f.in.Key, f.in.Reply = Session{}, benchKey(i), give(fmt.Sprint("_INBOX.anyone.", i))
		name := fmt.Sprint("orders/with/a/name/that/is/rather/long/", i)
		switch i % 5 {
		case 0:
		case 1:
			r.Op, r.Has, r.Key, name = subjects.OpRelease, subjects.HasKey, benchKey(i-1), fmt.Sprint("orders/with/a/name/that/is/rather/long/", i-1)
		case 4: // the waiter before asks again
			r.RequestID = fmt.Sprint("id-", i-1)
			fallthrough
		default:
			name, r.Wait = "wanted", time.Hour
		}
		r.Name = give(name)
		f.request(r)
	}
	f.in.Reply = "_INBOX.anyone.last"
	f.request(subjects.Request{Op: subjects.OpCheck, Name: "another"}) // what the table has of the step in progress is this one's
	waiting := 0
	texts(reflect.ValueOf(f.table), map[uintptr]bool{}, func(text string) {
		at := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		if strings.HasPrefix(text, "_INBOX.anyone.") {
			waiting++
		}
		for _, m := range given {
			if text != "" && at >= m.begin && at < m.end {
				t.Errorf("the table keeps %q of %q", text, m.text)
			}
		}
	})
	if waiting == 0 {
		t.Error("nobody waits")
	}
	runtime.KeepAlive(given)
}

// texts calls each with every string that can be reached.
func texts(v reflect.Value, seen map[uintptr]bool, each func(string)) {
	switch v.Kind() {
	case reflect.String:
		each(v.String())
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.Pointer()] {
			seen[v.Pointer()] = true
			texts(v.Elem(), seen, each)
		}
	case reflect.Interface:
		texts(v.Elem(), seen, each)
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i), seen, each)
		}
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
			for i := range v.Len() {
				texts(v.Index(i), seen, each)
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			texts(at.Key(), seen, each)
			texts(at.Value(), seen, each)
		}
	}
}
