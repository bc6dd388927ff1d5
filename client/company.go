package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// company is the clients that share a connection, which is their caller's (WithConn). Their sessions' keep-alives are due at the same moments
// (package machine, "Keep-alives in step"), and those for one node go in as few messages as they fit into, if the node takes that. Whoever's timer
// rings first takes along what is due for the others; nobody waits for anybody. What is not answered in time is asked again by each machine,
// by itself and of all nodes. So nothing rests on the company.
type company struct {
	key   companyKey
	phase int64 // machine.Config.Phase of all
	inbox string
	begin sync.Once
	sub   *nats.Subscription // nil: err says why; of begin
	err   error
	wake  chan struct{} // something is to be sent; holds one
	quit  chan struct{}
	runs  sync.WaitGroup
	refs  int // clients that have entered; guarded by companies

	mu      sync.Mutex // may be taken with a client's, and never the other way round
	members []*Client
	due     []lifeSign
	sent    map[uint64]sentSign // that are not answered, by token
	last    uint64              // token
	swept   int64
	nodes   []companyNode

	bundle subjects.Bundle // of the goroutine
}

type companyKey struct {
	nc   *nats.Conn
	user string
}

// companyNode is what is known of a node.
type companyNode struct {
	name    string
	limits  subjects.BundleLimits // it takes so much; nothing: it is not known to take any
	askedAt int64
}

// lifeSign is a keep-alive to one node.
type lifeSign struct {
	c             *Client
	node, subject string
	reply         string // token
	beat          uint64
	body          []byte
}

// sentSign is one that is under way in a bundle.
type sentSign struct {
	c    *Client
	node string
	beat uint64
	at   int64
}

const (
	maxLifeSigns = 1 << 16           // that are to be sent; one more is left out, and its machine repeats it
	signTokens   = 36 * 36 * 36 * 36 // so that 64 of them fit into a reply subject; one comes again when its first is answered or long past
	signTime     = int64(60e9)       // an answer that comes later proves nothing
)

// companies are all of the process.
var companies = struct {
	sync.Mutex
	of map[companyKey]*company
}{of: map[companyKey]*company{}}

// enterCompany gives the company of a connection. It must be left.
func enterCompany(nc *nats.Conn, user string) (*company, error) {
	k := companyOf(companyKey{nc, user})
	// Without the lock of all: a connection that stands still keeps whoever subscribes, and other connections' clients are not to wait for it.
	k.begin.Do(func() {
		if k.sub, k.err = nc.Subscribe(k.inbox+"*", k.receive); k.err == nil {
			k.runs.Go(k.run)
		}
	})
	if k.err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to the inbox of keep-alives: %w", k.err), k.leave())
	}
	return k, nil
}

// companyOf counts one more client that has entered.
func companyOf(key companyKey) *company {
	companies.Lock()
	defer companies.Unlock()
	k := companies.of[key]
	if k == nil {
		k = &company{key: key, phase: boottime.Now(), inbox: newInbox(key.user), wake: make(chan struct{}, 1), quit: make(chan struct{}), sent: map[uint64]sentSign{}}
		companies.of[key] = k
	}
	k.refs++
	return k
}

// leave is called once for each entering.
func (k *company) leave() error {
	companies.Lock()
	k.refs--
	last := k.refs == 0
	if last {
		delete(companies.of, k.key)
	}
	companies.Unlock()
	if !last || k.sub == nil {
		return nil
	}
	close(k.quit)
	k.runs.Wait()
	return k.sub.Unsubscribe()
}

// join has a client take part until it parts.
func (k *company) join(c *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members = append(k.members, c)
}

func (k *company) part(c *Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members = slices.DeleteFunc(k.members, func(m *Client) bool { return m == c })
	k.due = slices.DeleteFunc(k.due, func(s lifeSign) bool { return s.c == c })
	maps.DeleteFunc(k.sent, func(_ uint64, s sentSign) bool { return s.c == c }) // few: what is answered is not there
}

// takes takes a keep-alive to one node. False: it is none, or there is nobody to share a message with.
func (k *company) takes(c *Client, a *machine.Action) bool {
	if a.Node == "" {
		return false
	}
	beat, ok := beatOf(a.Reply)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !ok || len(k.members) < 2 {
		return false
	}
	if len(k.due) < maxLifeSigns {
		k.due = append(k.due, lifeSign{c: c, node: a.Node, subject: a.Subject, reply: a.Reply, beat: beat, body: a.Body})
	}
	signal(k.wake)
	return true
}

// run sends what there is, and what has become due meanwhile.
func (k *company) run() {
	var members []*Client
	for {
		select {
		case <-k.quit:
			return
		case <-k.wake:
		}
		k.mu.Lock()
		members = append(members[:0], k.members...)
		k.mu.Unlock()
		for _, c := range members {
			c.tickDue()
		}
		clear(members)
		select {
		case <-k.wake: // what they have brought
		default:
		}
		k.mu.Lock()
		due := k.due
		k.due = nil
		k.sweep()
		k.mu.Unlock()
		k.send(due)
	}
}

// tickDue does what the timer is about to ring for.
func (c *Client) tickDue() {
	c.do(func(now int64) {
		if c.m.Next() <= now {
			c.armed = machine.Never
			c.m.Tick(now)
		}
	})
}

// send sends all, those for one node together.
func (k *company) send(due []lifeSign) {
	slices.SortStableFunc(due, func(a, b lifeSign) int { return cmp.Compare(a.node, b.node) })
	for len(due) > 0 {
		n := 1
		for n < len(due) && due[n].node == due[0].node {
			n++
		}
		k.sendTo(due[0].node, due[:n])
		due = due[n:]
	}
}

// sendTo sends keep-alives to one node.
func (k *company) sendTo(node string, all []lifeSign) {
	limits, ask := k.node(node, len(all) > 1)
	if ask != "" {
		k.put(subjects.BundleSubject(node, k.key.user), k.inbox+ask, nil)
	}
	for len(all) > 0 {
		n := 0
		if limits.Keep && len(all) > 1 {
			n = k.fill(limits, all)
		}
		if n < 2 {
			k.empty()
			k.put(all[0].subject, all[0].c.inbox+all[0].reply, all[0].body)
			all = all[1:]
			continue
		}
		k.put(subjects.BundleSubject(node, k.key.user), k.bundle.Reply(k.inbox), k.bundle.Body())
		k.bundle.Reset()
		all = all[n:]
	}
}

// fill puts as many as fit into the bundle, and gives how many these are.
func (k *company) fill(limits subjects.BundleLimits, all []lifeSign) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := boottime.Now()
	for n < len(all) && len(k.sent) < signTokens/2 {
		token := k.freeToken()
		if !k.bundle.Add(limits, strconv.FormatUint(token, 36), subjects.OpKeep.String(), all[n].body) {
			break
		}
		k.last = token
		k.sent[token] = sentSign{c: all[n].c, node: all[n].node, beat: all[n].beat, at: now}
		n++
	}
	return n
}

// empty empties the bundle, which is not sent: nothing of it is under way.
func (k *company) empty() {
	if k.bundle.Len() > 0 {
		k.mu.Lock()
		delete(k.sent, k.last)
		k.mu.Unlock()
	}
	k.bundle.Reset()
}

// freeToken gives the next token that nothing under way has. The caller holds mu.
func (k *company) freeToken() uint64 {
	for token := (k.last + 1) % signTokens; ; token = (token + 1) % signTokens {
		if _, taken := k.sent[token]; !taken {
			return token
		}
	}
}

// node gives what a node is known to take, and a token to ask it with, if it is to be asked.
func (k *company) node(name string, several bool) (limits subjects.BundleLimits, ask string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.nodes, func(n companyNode) bool { return n.name == name })
	if i < 0 {
		i = len(k.nodes)
		k.nodes = append(k.nodes, companyNode{name: name})
	}
	n := &k.nodes[i]
	if now := boottime.Now(); several && !n.limits.Keep && (n.askedAt == 0 || now-n.askedAt >= askAgain) {
		n.askedAt = now
		ask = strconv.Itoa(i)
	}
	return n.limits, ask
}

func (k *company) put(subject, reply string, body []byte) {
	// What cannot be sent is repeated by its machine.
	_ = k.key.nc.PublishRequest(subject, reply, body)
}

// sweep forgets what was not answered for long. The caller holds mu.
func (k *company) sweep() {
	now := boottime.Now()
	if now-k.swept < signTime {
		return
	}
	k.swept = now
	maps.DeleteFunc(k.sent, func(_ uint64, s sentSign) bool { return now-s.at >= signTime })
}

// answered gives what was under way with a token.
func (k *company) answered(token string) (s sentSign, ok bool) {
	n, err := strconv.ParseUint(token, 36, 64)
	if err != nil {
		return sentSign{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok = k.sent[n]
	delete(k.sent, n)
	return s, ok
}

// receive takes what came to the inbox: the answer to a question, a sheaf, one answer, or the word that a bundle was not taken.
func (k *company) receive(msg *nats.Msg) {
	_, token := cutToken(msg.Subject)
	tokens, marked := cutMark(token)
	switch {
	case !marked:
		k.learn(token, msg)
	case tokens == "":
		k.receiveSheaf(msg.Data)
	default:
		if refusal := refusalOf(msg); refusal != nil {
			k.refused(tokens, refusal)
		} else {
			k.kept(tokens, msg.Data)
		}
	}
}

// learn takes the answer to a question.
func (k *company) learn(node string, msg *nats.Msg) {
	var limits subjects.BundleLimits
	i, err := strconv.Atoi(node)
	if err != nil || refusalOf(msg) != nil || limits.DecodeJSON(msg.Data) != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if i >= 0 && i < len(k.nodes) {
		k.nodes[i].limits = limits
	}
}

func (k *company) receiveSheaf(sheaf []byte) {
	eachAnswer(sheaf, func(token, body []byte, refusal *subjects.Refusal) {
		if refusal != nil {
			k.refused(string(token), refusal)
		} else {
			k.kept(string(token), body)
		}
	})
}

// kept takes the answer to one keep-alive. It says for which beat it is; what it proves its machine compares with what the session has.
func (k *company) kept(token string, body []byte) {
	s, ok := k.answered(token)
	var kept subjects.Kept
	if !ok || kept.DecodeJSON(body) != nil || kept.Beat != s.beat {
		return
	}
	s.c.do(func(now int64) { s.c.m.Kept(now, &kept) })
}

// refused takes the refusal of one keep-alive, or of a bundle, which may say nothing about any of them: then all nodes are asked.
func (k *company) refused(tokens string, refusal *subjects.Refusal) {
	several := false
	for token := range subjects.BundleTokens(tokens) {
		s, ok := k.answered(token)
		if !ok {
			continue
		}
		if several = several || token != tokens; several {
			refusal = notKept
			k.unlearn(s.node)
		}
		s.c.do(func(now int64) { s.c.m.KeepRefused(now, s.beat, refusal) })
	}
}

var notKept = &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "the node does not take several keep-alives in one message"}

// unlearn says that a node does not take bundles.
func (k *company) unlearn(node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.nodes {
		if k.nodes[i].name == node {
			k.nodes[i].limits = subjects.BundleLimits{}
		}
	}
}
