package subjects

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What is put into a bundle comes out of it, in order, each with its own reply subject.
func TestBundle(t *testing.T) {
	var b Bundle
	for i := range 3 {
		if !b.Add(OwnBundleLimits(), fmt.Sprint("c", i), "acquire", fmt.Appendf(nil, `{"name":"n%d"}`, i)) {
			t.Fatal("no room")
		}
	}
	if b.Add(OwnBundleLimits(), "c3", "acquire", []byte("{\"name\":\"n3\",\"data\":[1,\n2]}")) || b.Len() != 3 {
		t.Error("a request with a line feed is in a bundle")
	}
	reply := b.Reply("_INBOX.U.")
	if reply != "_INBOX.U.~c0~c1~c2" {
		t.Errorf("reply %q", reply)
	}
	requests, refusal := OpenBundle(reply, b.Body())
	if refusal != nil {
		t.Fatal(refusal)
	}
	for i := range 3 {
		reply, op, body, ok := requests.Next(nil)
		if want := fmt.Sprint("_INBOX.U.~c", i); !ok || reply != want || string(op) != "acquire" || string(body) != fmt.Sprintf(`{"name":"n%d"}`, i) {
			t.Errorf("%q, %q, %q, %v", reply, op, body, ok)
		}
	}
	if _, _, _, ok := requests.Next(nil); ok {
		t.Error("a fourth request")
	}
	if b.Reset(); b.Len() != 0 || len(b.Body()) != 0 || b.Reply("x.") != "x." {
		t.Error("not empty after Reset")
	}
}

// A bundle that is full by number, by bytes, or by its tokens takes no more, and can be read.
func TestBundleIsFull(t *testing.T) {
	for what, add := range map[string]func(b *Bundle, i int) bool{
		"requests": func(b *Bundle, i int) bool { return b.Add(OwnBundleLimits(), fmt.Sprint(i), "cancel", []byte(`{}`)) },
		"bytes": func(b *Bundle, i int) bool {
			return b.Add(OwnBundleLimits(), fmt.Sprint(i), "acquire", bytes.Repeat([]byte("x"), 1000))
		},
		"tokens": func(b *Bundle, i int) bool {
			return b.Add(OwnBundleLimits(), strings.Repeat("t", 20)+fmt.Sprint(i), "renew", []byte(`{}`))
		},
	} {
		var b Bundle
		n := 0
		for add(&b, n) {
			n++
		}
		reply := b.Reply("_INBOX." + strings.Repeat("U", 56) + "." + strings.Repeat("n", 22) + ".16.")
		if _, refusal := OpenBundle(reply, b.Body()); refusal != nil || n != b.Len() || n < 10 || !ValidReply(reply, "", true) {
			t.Errorf("%s: %d are in it, %d were taken: %v", what, b.Len(), n, refusal)
		}
	}
}

// A node may have lower limits than ours.
func TestBundleLimits(t *testing.T) {
	var limits BundleLimits
	if err := limits.DecodeJSON(BundleLimits{Requests: 2, Bytes: 50}.AppendJSON(nil)); err != nil || limits != (BundleLimits{Requests: 2, Bytes: 50}) {
		t.Fatal(limits, err)
	}
	var b Bundle
	for i, want := range []bool{true, true, false} {
		if got := b.Add(limits, "t", "renew", []byte("{}")); got != want {
			t.Errorf("request %d is in it: %v", i, got)
		}
	}
	b.Reset()
	if b.Add(limits, "t", "renew", bytes.Repeat([]byte("x"), 50)) || b.Add(BundleLimits{}, "t", "renew", nil) {
		t.Error("more than the node takes")
	}
	for _, bad := range []string{"", "{}", `{"requests":0,"bytes":5}`, `{"requests":5}`, `{"requests":-1,"bytes":5}`, `{"requests":"x","bytes":5}`} {
		if err := limits.DecodeJSON([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, limits)
		}
	}
}

func TestBadBundles(t *testing.T) {
	for _, c := range []struct {
		reply, body string
		code        int
	}{
		{"_INBOX.U.~a~b", "acquire {}\n", 400},
		{"_INBOX.U.~a", "acquire {}\nacquire {}\n", 400},
		{"_INBOX.U.~a~", "acquire {}\nacquire {}\n", 400},
		{"_INBOX.U.~~a", "acquire {}\nacquire {}\n", 400},
		{"_INBOX.U.~a~~b", "acquire {}\nacquire {}\nacquire {}\n", 400},
		{"_INBOX.U.~", "acquire {}\n", 400},
		{"_INBOX.U.a", "acquire {}\n", 400},
		{"_INBOX.~a.b", "acquire {}\n", 400},
		{"~a", "acquire {}\n", 400},
		{"", "acquire {}\n", 400},
		{"_INBOX.U.~a", "acquire {}", 400},
		{"_INBOX.U.~a~b", "acquire {}\nacquire {}", 400},
		{"_INBOX.U." + strings.Repeat("~a", MaxBundle+1), strings.Repeat("acquire {}\n", MaxBundle+1), 413},
		{"_INBOX.U.~a", strings.Repeat("x", MaxBundleBytes) + "\n", 413},
	} {
		if _, refusal := OpenBundle(c.reply, []byte(c.body)); refusal == nil || refusal.Code != c.code {
			t.Errorf("%.40q, %.40q: %v", c.reply, c.body, refusal)
		}
	}
}

// Answers come out of a sheaf as they were put in, but one with a line feed, which is not taken.
func TestSheaf(t *testing.T) {
	var sheaf []byte
	var ok bool
	for _, a := range []struct {
		token string
		body  Body
		taken bool
	}{
		{"c1", &Released{Token: 7}, true},
		{"c2", raw("{\n}"), false},
		{"c3", &Refusal{Code: 409, Reason: ReasonHeld, Message: "held\nby b"}, true},
	} {
		before := string(sheaf)
		if sheaf, ok = AppendAnswer(sheaf, a.token, a.body); ok != a.taken || !ok && string(sheaf) != before {
			t.Errorf("%s: %v, %q", a.token, ok, sheaf)
		}
	}
	first, rest, ok := NextAnswer(sheaf)
	if !ok || string(first.Token) != "c1" || first.Refused || !strings.Contains(string(first.Body), `"token":7`) {
		t.Errorf("%q %q, %v", first.Token, first.Body, ok)
	}
	second, rest, ok := NextAnswer(rest)
	refusal, read := DecodeRefusal(second.Body)
	if !ok || string(second.Token) != "c3" || !second.Refused || !read || refusal.Message != "held\nby b" {
		t.Errorf("%q %q, %v, %v", second.Token, second.Body, ok, refusal)
	}
	if _, _, ok := NextAnswer(rest); ok {
		t.Error("a third answer")
	}
	for _, bad := range []string{"", "c1 200 {}", "c1 200\n", "c1\n", " 200 {}\n", "c1 2000 {}\n", "c1 20 {}\n", "c1 x00 {}\n", "\n"} {
		if _, _, ok := NextAnswer([]byte(bad)); ok {
			t.Errorf("%q is an answer", bad)
		}
	}
}

type raw string

func (r raw) AppendJSON(dst []byte) []byte { return append(dst, r...) }

func TestCutSheaf(t *testing.T) {
	for reply, want := range map[string][2]string{
		"_INBOX.U.x.~c1": {"_INBOX.U.x.~", "c1"},
		"_INBOX.~c1":     {"_INBOX.~", "c1"},
		"_INBOX.U.x.~":   {}, "_INBOX.U.x.c1": {}, "_INBOX.~x.c1": {}, "~c1": {}, "": {}, ".": {}, "a.": {},
	} {
		sheaf, token, ok := CutSheaf(reply)
		if sheaf != want[0] || token != want[1] || ok != (want[1] != "") {
			t.Errorf("%q: %q, %q, %v", reply, sheaf, token, ok)
		}
	}
}

// Whatever a bundle looks like: it is refused as a whole, or gives a request for each line, whose answer, alone or in a sheaf, goes to
// nobody who does not get what goes to the bundle's own reply subject.
func FuzzBundle(f *testing.F) {
	f.Add("_INBOX.U.~a~b", []byte("acquire {\"name\":\"x\"}\nrelease {}\n"))
	f.Add("_INBOX.U.~a", []byte("acquire {}\n\n"))
	f.Add("_INBOX.V.~a", []byte("\n"))
	f.Add("_INBOX.U.~a..~b", []byte(" x\ny\n"))
	f.Fuzz(func(t *testing.T, reply string, body []byte) {
		requests, refusal := OpenBundle(reply, body)
		if refusal != nil {
			checkRefused(t, refusal)
			return
		}
		lines := bytes.SplitAfter(body, newline)
		inbox := reply[:strings.LastIndexByte(reply, '.')+1]
		var tokens []string
		for i := 0; ; i++ {
			own, op, body, more := requests.Next(nil)
			if !more {
				if i != len(lines)-1 || i > MaxBundle || !slices.Equal(tokens, slices.Collect(BundleTokens(reply[len(inbox)+1:]))) {
					t.Fatalf("%d requests of %d lines, %q of %q", i, len(lines)-1, tokens, reply)
				}
				return
			}
			if line := string(op) + " " + string(body) + "\n"; line != string(lines[i]) && string(op)+"\n" != string(lines[i]) {
				t.Fatalf("line %q is read as %q and %q", lines[i], op, body)
			}
			sheaf, token, ok := CutSheaf(own)
			if !ok || sheaf != inbox+bundleMark || own != sheaf+token {
				t.Fatalf("%q, of which the sheaf is %q, in a bundle for %q", own, sheaf, reply)
			}
			if ValidReply(reply, "U", false) && (!ValidReply(own, "U", false) || !ValidReply(sheaf, "U", false)) {
				t.Fatalf("%q and %q are not U's, but %q is", own, sheaf, reply)
			}
			tokens = append(tokens, token)
		}
	})
}

// A sheaf is read to its end or to what cannot be read, and what was written is read again.
func FuzzSheaf(f *testing.F) {
	f.Add([]byte("c1 200 {}\nc2 409 {\"error\":{}}\n"))
	f.Add([]byte("c1 200 \n  \n"))
	f.Fuzz(func(t *testing.T, sheaf []byte) {
		for len(sheaf) > 0 {
			a, rest, ok := NextAnswer(sheaf)
			if !ok {
				return
			}
			if len(rest) >= len(sheaf) || bytes.ContainsAny(a.Token, " \n") || bytes.IndexByte(a.Body, '\n') >= 0 {
				t.Fatalf("%q is read as %q %q", sheaf, a.Token, a.Body)
			}
			var body Body = raw(a.Body)
			again, ok := AppendAnswer(nil, string(a.Token), body)
			if !ok {
				t.Fatalf("%q %q cannot be written", a.Token, a.Body)
			}
			if b, _, ok := NextAnswer(again); !ok || !bytes.Equal(b.Body, a.Body) || !bytes.Equal(b.Token, a.Token) {
				t.Fatalf("%q is read as %q %q", again, b.Token, b.Body)
			}
			sheaf = rest
		}
	})
}

// The text of a session that was there before is used again only where it is the same.
func TestSessionsTextIsUsedAgain(t *testing.T) {
	var r Request
	for _, session := range []string{"one", "one", "two", "", "three"} {
		before := r.Session
		body := (&Request{Op: OpAcquire, Name: "n", Session: session}).AppendJSON(nil)
		if refusal := r.Decode(OpAcquire, body); refusal != nil || r.Session != session {
			t.Errorf("%s after %q gives %q: %v", body, before, r.Session, refusal)
		}
	}
	r.Session = "x"
	if refusal := r.Decode(OpAcquire, []byte(`{"name":"n","session":5}`)); refusal == nil {
		t.Error("a number is a session")
	}
}
