package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf"
)

// Reload takes over the zones of new settings and what has changed in the keys (new zones, revoked users) while the
// daemon runs. Everything else in the settings needs a restart and is left as it is. A zone that is gone from the
// settings loses its clients at once; its locks end by their own leases and limits.
func (d *Daemon) Reload(ctx context.Context, settings *conf.Settings) error {
	if err := settings.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if !d.ready.Load() {
		return fmt.Errorf("take over new settings: %w", ErrStopped)
	}
	if d.settings.Data != "" {
		if err := d.auth.Reload(); err != nil {
			return fmt.Errorf("read the keys again: %w", err)
		}
	}
	if err := d.nats.ApplyZones(ctx, settings.Zones); err != nil {
		return fmt.Errorf("tell the embedded server the zones: %w", err)
	}
	wanted := make(map[string]bool)
	var problems error
	for _, zone := range settings.Zones {
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
	// Known before it is asked: what a table answers goes to the zone that the map names.
	zones := maps.Clone(*d.zones.Load())
	zones[z.name] = z
	d.zones.Store(&zones)
	d.count(z)
	if err := z.subscribe(); err != nil {
		d.dropZone(z) // whole or not at all: the next reload tries again
		return fmt.Errorf("zone %s: %w", settings.Name, err)
	}
	return nil
}

// count has the shards count what the tables already have of a zone: it may have been here before.
func (d *Daemon) count(z *zone) {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: func(s *shard) {
			for i, number := range s.numbers {
				z.count(number, s.tables[i].Usage(z.name))
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
			for _, table := range s.tables {
				table.SetZone(settings.Name, bucket.ZoneSettings{LockEvents: settings.LockEvents})
			}
		}})
	}
}
