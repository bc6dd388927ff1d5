package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

const (
	zoneGoal    = 64.0 // KiB
	sessionGoal = 1024 // bytes
)

// measureMemory measures what each node keeps of a zone and of a session that nobody uses: heap and stacks of whole daemons.
func measureMemory(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	parts := []struct {
		name string
		t    table
		run  func(ctx context.Context, path string, t *table) error
	}{
		{"zones", table{Title: "Memory of a zone, on each of three nodes", Columns: []string{"each"}}, idleZones},
		{"sessions", table{Title: "Memory of a session, on each of three nodes", Columns: []string{"each"}}, idleSessions},
	}
	parts[0].t.note("Heap and stacks of %d zones with users more than of none, without garbage. A pair", manyZones)
	parts[0].t.note("is of another lock each time, so all buckets are used. Goal: %.0f KiB for an idle zone.", zoneGoal)
	parts[1].t.note("Heap and stacks of %d sessions more than before. Each had one lock, so one bucket knows it. Goal: %d B for an idle one.", manySessions, sessionGoal)
	var all []table
	for i := range parts {
		p := &parts[i]
		if len(flags.parts) > 0 && !slices.Contains(flags.parts, p.name) {
			continue
		}
		for _, path := range paths {
			if err := p.run(ctx, path, &p.t); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
		}
		all = append(all, p.t)
	}
	return all, nil
}

// lean are the options of a cluster whose memory is looked at.
func lean(zones int) rig.Options {
	return rig.Options{Args: flags.args, Env: []string{rig.LeanEnv}, Zones: zones, HTTP: true, Keep: flags.keep}
}

// idleZones measures what a zone takes of a node's memory: never used, and used and idle again.
func idleZones(ctx context.Context, path string, t *table) error {
	alone, err := rig.StartCluster(ctx, path, clusterNodes, lean(0))
	if err != nil {
		return err
	}
	least, err := alone.Memory(ctx)
	alone.Stop()
	if err != nil {
		return err
	}
	d, err := rig.StartCluster(ctx, path, clusterNodes, lean(manyZones))
	if err != nil {
		return err
	}
	defer d.Stop()
	fresh, err := d.Memory(ctx)
	if err != nil {
		return err
	}
	t.add(d.Label+": a zone, never used", kibibytes((fresh-least)/manyZones))
	return usedZones(ctx, d, t, fresh)
}

const (
	fewPairs  = 64 // in each zone
	pairsEach = 16 // workers in a zone
)

// usedZones takes a few locks in every zone.
func usedZones(ctx context.Context, d *rig.Daemons, t *table, fresh float64) error {
	for i := range manyZones {
		if err := useZone(ctx, d, i); err != nil {
			return err
		}
	}
	used, err := d.Memory(ctx)
	if err != nil {
		return err
	}
	t.add(fmt.Sprintf("%s: what %d pairs in it add", d.Label, fewPairs), kibibytes((used-fresh)/manyZones))
	return nil
}

// useZone does pairs in a zone, each of another lock.
func useZone(ctx context.Context, d *rig.Daemons, zone int) error {
	nc, user, err := d.InZone(zone, zone%clusterNodes)
	if err != nil {
		return err
	}
	defer nc.Close()
	l := &locks{buckets: conf.Default().Buckets, user: user}
	return together(ctx, pairsEach, func(w int) error {
		for i := w; i < fewPairs; i += pairsEach {
			name := strconv.Itoa(i)
			grant, err := l.acquire(nc, &subjects.Request{Name: name})
			if err != nil {
				return err
			}
			if err := l.release(nc, name, grant.Key); err != nil {
				return err
			}
		}
		return nil
	})
}

// idleSessions measures a session that has a lock, one that has none any more, and the same when nobody can repeat its requests.
func idleSessions(ctx context.Context, path string, t *table) (err error) {
	d, err := rig.StartCluster(ctx, path, clusterNodes, lean(0))
	if err != nil {
		return err
	}
	defer d.Stop()
	all, err := connectSessions(d, time.Minute)
	if err != nil {
		return err
	}
	defer all.close()
	before, err := d.Memory(ctx)
	if err != nil {
		return err
	}
	look := func(name string) error {
		now, err := d.Memory(ctx)
		t.add(d.Label+": "+name, bytes((now-before)/manySessions))
		return err
	}
	const period = 10 * time.Second
	steps := []struct {
		name   string
		rounds int
		period time.Duration
		ask    func(i int) error
	}{
		{"opened, has never had anything", 1, period, all.open},
		{"has a lock", 1, period, all.acquire},
		{"has released it just now", 1, period, all.release},
		{"has nothing for more than two minutes, kept alive", 5, all.lease / 2, all.keepEverywhere},
	}
	for _, s := range steps {
		for range s.rounds {
			if err := all.paced(ctx, manySessions, s.period, s.ask); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if err := look(s.name); err != nil {
			return err
		}
	}
	return nil
}
