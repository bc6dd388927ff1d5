package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// keepSlots is how many times in half a lease the Go clients of one connection send what is due by then (internal/machine, "Keep-alives in step").
const keepSlots = 2

// bundleMark begins the token of a request whose answer may come in a sheaf.
var bundleMark = subjects.TakesSheaves("")

// pacedBundles has sessions keep themselves alive once in a time, those of a connection together: at one of its moments all that are due by
// then, those with a lock at the same node in one message. The moments of the connections are spread evenly. n is how many sessions of all do so.
func (s *sessions) pacedBundles(ctx context.Context, n int, period time.Duration) error {
	moments := len(s.conns) * keepSlots
	moments = moments * n / len(s.all)
	sent := 0
	s.asks = s.keep // by itself, as the Go client repeats it
	s.answered.Store(0)
	if err := pace(ctx, moments, period, func(moment int) error {
		due, err := s.bundles(moment%len(s.conns), moment/len(s.conns))
		sent += due
		return err
	}); err != nil {
		return err
	}
	if sent < n*9/10 || sent > n*11/10 {
		return fmt.Errorf("%d keep-alives were sent, and not %d", sent, n)
	}
	return s.settled(ctx, sent)
}

// bundles sends what is due over a connection in one of its slots: the sessions' order in time is about that of all other looks, so that no
// lease ends between two of them.
func (s *sessions) bundles(conn, slot int) (sent int, err error) {
	byNode := make(map[string][]int, clusterNodes)
	each := (len(s.all) + len(s.conns) - 1) / len(s.conns)
	for j := slot * each / keepSlots; j < (slot+1)*each/keepSlots; j++ {
		i := conn + j*len(s.conns)
		if i >= len(s.all) {
			break
		}
		byNode[s.all[i].node] = append(byNode[s.all[i].node], i)
		sent++
	}
	for node, all := range byNode { // order: each is another node's
		if err := s.keepTogether(s.conns[conn], node, all); err != nil {
			return 0, err
		}
	}
	return sent, nil
}

// keepTogether sends the keep-alives of sessions in as few messages as they fit into.
func (s *sessions) keepTogether(c *sessionConn, node string, all []int) error {
	var bundle subjects.Bundle
	seal := func() error {
		defer bundle.Reset()
		return c.PublishRequest(subjects.BundleSubject(node, subjects.Anyone), bundle.Reply(c.inbox+subjects.OpKeep.String()+"."), bundle.Body())
	}
	limits := subjects.OwnBundleLimits()
	for _, i := range all {
		s.all[i].beat++
		req := subjects.Request{Op: subjects.OpKeep, Session: s.all[i].token, Beat: s.all[i].beat}
		token, op, body := strconv.FormatInt(int64(i), 36), req.Op.String(), req.AppendJSON(nil)
		if bundle.Add(limits, token, op, body) {
			continue
		}
		if err := seal(); err != nil {
			return err
		}
		if !bundle.Add(limits, token, op, body) {
			return fmt.Errorf("a keep-alive fits into no bundle: %s", body)
		}
	}
	return seal()
}

// takeSheaf is told of answers to keep-alives that came together.
func (s *sessions) takeSheaf(sheaf []byte) {
	for len(sheaf) > 0 {
		a, rest, ok := subjects.NextAnswer(sheaf)
		if !ok {
			s.fail(fmt.Errorf("answers that cannot be read: %q", sheaf))
			return
		}
		sheaf = rest
		s.takeKept(string(a.Token), a.Refused, a.Body)
	}
}

// takeKept is told of an answer to one of them.
func (s *sessions) takeKept(token string, refused bool, body []byte) {
	i, err := strconv.ParseInt(token, 36, 32)
	if err == nil && refused {
		refusal, _ := subjects.DecodeRefusal(body)
		err = refusal
	}
	if err == nil {
		err = s.kept(int(i), body)
	}
	if err != nil {
		s.fail(fmt.Errorf("a keep-alive in a bundle, %q: %w", token, err))
		return
	}
	s.answered.Add(1)
}
