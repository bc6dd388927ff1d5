package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// adopt has those look who follow the shared configuration. It does not wait.
func (d *Daemon) adopt() {
	d.events.notice()
	select {
	case d.adopted <- struct{}{}:
	default:
	}
	select {
	case d.turned <- struct{}{}:
	default:
	}
}

// follow brings the zones and the routes to what the shared configuration says, whenever that has changed.
func (d *Daemon) follow() {
	for {
		select {
		case <-d.adopted:
		case <-d.over:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
		if err := d.applyZones(ctx, d.state.Load()); err != nil && !d.failed() && d.ready.Load() {
			d.log.Error("the zones cannot be brought to what the cluster's configuration says; the next change tries again", "error", err)
		}
		cancel()
	}
}

// openZones serves the zones of the shared configuration for the first time. A daemon that no other can join is configured
// by its file, which may have changed since it ran last.
func (d *Daemon) openZones(ctx context.Context, state *shared.State) error {
	if !d.settings.Clustered() {
		return d.shareZones(ctx, d.settings.Zones)
	}
	return d.applyZones(ctx, state)
}

// applyZones makes the zones and their users those of the shared configuration, and finds the nodes where it says.
func (d *Daemon) applyZones(ctx context.Context, state *shared.State) error {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if d.closing {
		return fmt.Errorf("take over the zones: %w", ErrStopped)
	}
	if d.journal != nil && state.Settings.Sync == conf.SyncAlways {
		d.journal.SyncAlways() // until the next start, also if the cluster takes it back
	}
	if d.zonesAt != nil && state.Change < d.zonesAt.Change {
		return nil // a newer one was taken over while this one waited for its turn
	}
	if d.zonesAt != nil && sameZones(d.zonesAt, state) {
		d.zonesAt = state
		return nil
	}
	if err := d.auth.Follow(state.Keys); err != nil {
		return fmt.Errorf("take over the keys of the zones: %w", err)
	}
	if err := d.useZones(ctx, state.Zones); err != nil {
		return err
	}
	routes := make(map[string][]string)
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Number != d.number {
			routes[n.ID] = n.Routes
		}
	}
	if d.settings.Clustered() {
		if err := d.nats.SetRoutes(routes); err != nil {
			return fmt.Errorf("look for the other nodes: %w", err)
		}
	}
	if d.settings.Clustered() && d.settings.Data != "" {
		if err := conf.SaveZones(d.settings.Data, state.Zones); err != nil {
			return err
		}
	}
	d.zonesAt = state
	return nil
}

// sameZones says whether two states have the same zones, keys and routes. They share what has not changed.
func sameZones(a, b *shared.State) bool {
	if len(a.Zones) != len(b.Zones) || len(a.Keys) != len(b.Keys) || len(a.Nodes) != len(b.Nodes) {
		return false
	}
	for i := range a.Zones {
		if a.Zones[i] != b.Zones[i] {
			return false
		}
	}
	for i := range a.Nodes {
		if a.Nodes[i].Number != b.Nodes[i].Number || !slices.Equal(a.Nodes[i].Routes, b.Nodes[i].Routes) {
			return false
		}
	}
	for name, keys := range a.Keys { // order: each is compared by itself
		other, there := b.Keys[name]
		if !there || keys.Account != other.Account || len(keys.Users) != len(other.Users) ||
			!slices.Equal(keys.Users, other.Users) {
			return false
		}
	}
	return true
}

// lacksQuorum says whether fewer nodes are there than new locks need.
func (d *Daemon) lacksQuorum() bool {
	return d.live.Load() < int64(d.state.Load().Settings.MinQuorum)
}

// alert writes what any node of the cluster wants people to look into.
func (d *Daemon) alert(a control.Alert) {
	d.metrics.alerts.Inc()
	if tools := d.tools.Load(); tools != nil {
		tools.Alert(a)
	}
	d.log.Error("ALERT", "node", a.Node, "bucket", a.Bucket, "text", a.Text, "told", a.Time)
}
