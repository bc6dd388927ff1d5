package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// open makes the network, the cluster and the clients, and returns when all are at work.
func (r *run) open(ctx context.Context) (err error) {
	if r.network, err = daemons.OpenNetwork(); err != nil {
		return err
	}
	var members []*daemons.Node
	for range r.schedule.Nodes {
		n, err := r.newNode()
		if err != nil {
			return err
		}
		r.nodes, members = append(r.nodes, n), append(members, n.Node)
	}
	if err := daemons.Enroll(members); err != nil {
		return err
	}
	for _, n := range r.nodes {
		if err := r.launch(n); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, patience)
		err := n.serving(waiting)
		cancel()
		if err != nil {
			return fmt.Errorf("%s does not serve; its log ends with\n%s", n.Name, r.logTail(n.Name, 15))
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.makeZones(bounded); err != nil {
		return err
	}
	for key, value := range r.schedule.Settings { // order: they have nothing to do with each other
		if _, err := r.config(bounded, "set", key, value); err != nil {
			return err
		}
	}
	for {
		err := r.settled(bounded)
		if err == nil {
			break
		}
		if !sleep(bounded, 50*time.Millisecond) {
			return fmt.Errorf("the cluster does not come together in the beginning: %w", err)
		}
	}
	var looking sync.WaitGroup
	watching, stop := context.WithCancel(ctx)
	looking.Go(func() { r.doubts(watching) })
	looking.Go(func() { r.withholds(watching) })
	looking.Go(func() { r.count(watching) })
	r.stopLooking = func() { stop(); looking.Wait() }
	for slot := 1; slot <= r.schedule.Clients; slot++ {
		w := &worker{slot: slot}
		if err := r.network.Add(clientHost(slot)); err != nil {
			return err
		}
		r.workers = append(r.workers, w)
		w.mu.Lock()
		err := r.spawn(w)
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	r.say("%6.0fs %d nodes and %d client processes are at work; seed %d, acks %s, %s, %s", r.since(), r.schedule.Nodes, r.schedule.Clients,
		r.schedule.Seed, r.schedule.Acks, fmt.Sprint(r.schedule.Settings), r.dir)
	return nil
}

// makeZones makes a second zone, with a user. The first is open.
func (r *run) makeZones(ctx context.Context) error {
	const name = "orders"
	creds := filepath.Join(r.dir, "chaos.creds")
	for _, args := range [][]string{{"zone", "add", name}, {"user", "add", "--zone", name, "--role", "admin", "--out", creds, "chaos"}} {
		for {
			_, err := r.config(ctx, args...)
			if err == nil {
				break
			}
			if !sleep(ctx, 200*time.Millisecond) {
				return err
			}
		}
	}
	c, err := client.Connect(ctx, "nats://"+r.nodes[0].Listen, client.WithCredentials(creds))
	if err != nil {
		return fmt.Errorf("connect as a user of zone %s: %w", name, err)
	}
	r.zones = []zone{{Name: conf.DefaultZone, User: "anyone"}, {Name: name, Creds: creds, User: c.User()}}
	return c.Close(ctx)
}

// end has the clients end, and judges what is left of the history. settled: the cluster had come together.
func (r *run) end(settled bool) error {
	if r.stopLooking != nil {
		defer r.stopLooking()
	}
	if settled {
		ended := make(chan struct{})
		go func() { r.dismiss(context.Background()); close(ended) }()
		var err error
		for waiting := true; waiting && err == nil; {
			select {
			case <-ended:
				waiting = false
			case <-time.After(200 * time.Millisecond):
				err = r.look()
			}
		}
		<-ended
		if err != nil {
			return err
		}
	} else {
		for _, w := range r.workers {
			w.mu.Lock()
			if w.over = true; w.process != nil && w.downs == 0 {
				w.process.Kill()
				r.bury(w)
			}
			w.mu.Unlock()
		}
	}
	r.tapes.Lock()
	r.ownTape.ended = true
	r.tapes.Unlock()
	if !settled {
		return nil
	}
	if err := r.look(); err != nil {
		return err
	}
	r.history.checker.End(boottime.Now(), true)
	if wrong := r.history.fresh(); len(wrong) > 0 {
		r.story(wrong, nil)
		return ErrViolation
	}
	r.own.file.Close()
	r.own.marks.Close()
	if len(r.faults) == 0 {
		return errors.New("no fault happened: that proves nothing")
	}
	return nil
}

// remove takes the run's directory away.
func (r *run) remove() error {
	if err := os.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("take the run's directory away: %w", err)
	}
	return nil
}
