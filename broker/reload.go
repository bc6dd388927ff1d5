package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// Reload takes over the zones of new settings and what has changed in the keys (new zones, revoked users) while the
// daemon runs. Everything else in the settings needs a restart and is left as it is. A zone that is gone from the
// settings loses its clients at once; its locks end by their own leases and limits.
//
// Only a daemon that no other can join is configured by its file; nodes of a cluster share their zones, which are changed
// with oclocks-config.
func (d *Daemon) Reload(ctx context.Context, settings *conf.Settings) error {
	if err := settings.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if !d.ready.Load() {
		return fmt.Errorf("take over new settings: %w", ErrStopped)
	}
	if d.settings.Clustered() {
		return ErrShared
	}
	if d.settings.Data != "" {
		if err := d.auth.Reload(); err != nil {
			return fmt.Errorf("read the keys again: %w", err)
		}
	}
	return d.shareZones(ctx, settings.Zones)
}

// shareZones makes the zones of this daemon's file and its keys the shared configuration's, and waits until they are
// served.
func (d *Daemon) shareZones(ctx context.Context, zones []conf.Zone) error {
	for _, z := range zones {
		if err := d.auth.EnsureZone(z.Name); err != nil {
			return err
		}
	}
	keys := d.auth.Export()
	for _, command := range zoneCommands(d.control.State(), zones, keys) {
		result, err := d.control.Change(ctx, command)
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			return fmt.Errorf("change the shared configuration: %w", err)
		}
	}
	state, err := d.control.Read(ctx)
	if err != nil {
		return fmt.Errorf("read the shared configuration: %w", err)
	}
	return d.applyZones(ctx, state)
}

// zoneCommands are what makes the shared configuration have these zones with these keys, and no others.
func zoneCommands(state *shared.State, zones []conf.Zone, keys map[string]conf.ZoneKeys) []shared.Command {
	var commands []shared.Command
	wanted := make(map[string]bool)
	for _, z := range zones {
		wanted[z.Name] = true
		k := keys[z.Name]
		commands = append(commands, shared.Command{Zone: &shared.ZonePut{Zone: z, Keys: &k}})
	}
	for _, z := range state.Zones {
		if !wanted[z.Name] {
			commands = append(commands, shared.Command{RemoveZone: &shared.ZoneName{Name: z.Name}})
		}
	}
	return commands
}

// useZones serves exactly these zones. After an error a second call completes the change.
func (d *Daemon) useZones(ctx context.Context, zones []conf.Zone) error {
	if err := d.nats.ApplyZones(ctx, zones); err != nil {
		return fmt.Errorf("tell the embedded server the zones: %w", err)
	}
	wanted := make(map[string]bool)
	var problems error
	for _, zone := range zones {
		wanted[zone.Name] = true
		z := d.zone(zone.Name)
		if z != nil && z.conn.IsClosed() {
			d.removeZone(zone.Name) // it was removed and made again meanwhile: another account, same name
			z = nil
		}
		if z != nil {
			z.configure(zone)
			d.zoneSettings(zone)
			continue
		}
		problems = errors.Join(problems, d.addZone(zone))
	}
	for name := range *d.zones.Load() { // order: each is removed by itself
		if !wanted[name] {
			d.removeZone(name)
		}
	}
	return problems
}

// addZone starts a zone's pump and lets the shards know of it.
func (d *Daemon) addZone(settings conf.Zone) error {
	d.zoneMu.Lock()
	defer d.zoneMu.Unlock()
	d.zoneSettings(settings)
	z, err := d.newZone(settings)
	if err != nil {
		return err
	}
	z.apart = d.apart
	// Known before it is asked: what a table answers goes to the zone that the map names.
	zones := maps.Clone(*d.zones.Load())
	zones[z.name] = z
	d.zones.Store(&zones)
	d.recount(z)
	if err := z.subscribe(); err != nil {
		d.dropZone(z) // whole or not at all: the next reload tries again
		return fmt.Errorf("zone %s: %w", settings.Name, err)
	}
	return nil
}

// recount has the shards count what the tables already have of a zone: it may have been here before.
func (d *Daemon) recount(z *zone) {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: func(s *shard) {
			for _, c := range s.cells {
				delete(c.usage, z.name) // its counters begin at 0
				c.count(z)
			}
		}})
	}
}

func (d *Daemon) removeZone(name string) {
	d.zoneMu.Lock()
	defer d.zoneMu.Unlock()
	d.dropZone(d.zone(name))
	d.log.Info("zone removed", "zone", name)
}

// dropZone stops a zone and forgets it. zoneMu is held.
func (d *Daemon) dropZone(z *zone) {
	zones := maps.Clone(*d.zones.Load())
	delete(zones, z.name)
	d.zones.Store(&zones)
	z.stop()
	for _, s := range d.shards {
		s.queue.drop(z)
	}
}

func (d *Daemon) zoneSettings(settings conf.Zone) {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: func(s *shard) {
			s.zones[settings.Name] = bucket.ZoneSettings{LockEvents: settings.LockEvents}
			for _, c := range s.cells {
				c.SetZone(settings.Name, s.zones[settings.Name])
			}
		}})
	}
}
