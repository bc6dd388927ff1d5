package shared

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/conf"
)

func (t *turn) putZone(c *ZonePut) error {
	if err := c.Zone.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrValue, err)
	}
	name := c.Zone.Name
	for _, z := range t.next.Zones {
		if c.Zone.Open && z.Open && z.Name != name {
			return fmt.Errorf("%w: zone %s is open already, and only one can be", ErrValue, z.Name)
		}
	}
	i, there := t.next.zoneAt(name)
	switch {
	case !there && c.Keys == nil:
		return fmt.Errorf("%w: zone %s is new and comes without keys", ErrValue, name)
	case !there && len(t.next.Zones) >= conf.MaxZones:
		return fmt.Errorf("%w zones: there are %d", ErrTooMany, conf.MaxZones)
	}
	if c.Keys != nil {
		if err := t.putKeys(name, *c.Keys); err != nil {
			return err
		}
	}
	t.swap(0, zoneEntry(&c.Zone))
	t.next.Zones = slices.Clone(t.next.Zones)
	if there {
		t.swap(zoneEntry(&t.next.Zones[i]), 0)
		t.next.Zones[i] = c.Zone
		return nil
	}
	t.next.Zones = slices.Insert(t.next.Zones, i, c.Zone)
	return nil
}

func (t *turn) removeZone(name string) error {
	i, there := t.next.zoneAt(name)
	switch {
	case !there:
		return fmt.Errorf("zone %s: %w", shorten(name), ErrNotFound)
	case len(t.next.Zones) == 1:
		return fmt.Errorf("%w: zone %s is the last one: add another first", ErrValue, name)
	}
	t.swap(zoneEntry(&t.next.Zones[i]), 0)
	t.next.Zones = slices.Delete(slices.Clone(t.next.Zones), i, i+1)
	t.dropKeys(name)
	return nil
}

// putKeys replaces all keys and users of a zone.
func (t *turn) putKeys(zone string, k conf.ZoneKeys) error {
	if err := k.Validate(); err != nil {
		return fmt.Errorf("%w: keys of zone %s: %w", ErrValue, zone, err)
	}
	seen := make(map[string]bool, len(k.Users))
	for i := range k.Users {
		u := &k.Users[i]
		if err := checkUser(zone, u); err != nil {
			return err
		}
		if seen[u.Key] {
			return fmt.Errorf("%w: zone %s: user %s twice", ErrValue, zone, u.Key)
		}
		seen[u.Key] = true
	}
	t.dropKeys(zone)
	t.swap(0, keysEntry(zone, k))
	for i := range k.Users {
		t.swap(0, userEntry(zone, &k.Users[i]))
	}
	t.setKeys(zone, k)
	return nil
}

// dropKeys forgets the keys and users of a zone, if there are any.
func (t *turn) dropKeys(zone string) {
	k, ok := t.next.Keys[zone]
	if !ok {
		return
	}
	t.swap(keysEntry(zone, k), 0)
	for i := range k.Users {
		t.swap(userEntry(zone, &k.Users[i]), 0)
	}
	t.next.Keys = maps.Clone(t.next.Keys)
	delete(t.next.Keys, zone)
}

func (t *turn) setKeys(zone string, k conf.ZoneKeys) {
	t.next.Keys = maps.Clone(t.next.Keys)
	if t.next.Keys == nil {
		t.next.Keys = map[string]conf.ZoneKeys{}
	}
	t.next.Keys[zone] = k
}

func (t *turn) users(c *Users) error {
	k, ok := t.next.Keys[c.Zone]
	if !ok {
		return fmt.Errorf("zone %s: %w", shorten(c.Zone), ErrNotFound)
	}
	for i := range c.Put {
		if err := checkUser(c.Zone, &c.Put[i]); err != nil {
			return err
		}
	}
	gone := make(map[string]bool, len(c.Drop))
	for _, key := range c.Drop {
		gone[key] = true
	}
	list := make([]conf.User, 0, len(k.Users)+len(c.Put))
	at := make(map[string]int, len(k.Users)+len(c.Put))
	for i := range k.Users {
		u := &k.Users[i]
		if gone[u.Key] {
			t.swap(userEntry(c.Zone, u), 0)
			continue
		}
		at[u.Key] = len(list)
		list = append(list, *u)
	}
	for i := range c.Put {
		u := &c.Put[i]
		t.swap(0, userEntry(c.Zone, u))
		if j, ok := at[u.Key]; ok {
			t.swap(userEntry(c.Zone, &list[j]), 0)
			list[j] = *u
			continue
		}
		at[u.Key] = len(list)
		list = append(list, *u)
	}
	if len(list) > conf.MaxUsers {
		return fmt.Errorf("%w users in zone %s: %d, at most %d", ErrTooMany, c.Zone, len(list), conf.MaxUsers)
	}
	k.Users = list
	t.setKeys(c.Zone, k)
	return nil
}

// checkUser refuses who cannot be a user of the zone. One whose credentials were taken back may have no name and role: their
// key is all that is known then.
func checkUser(zone string, u *conf.User) error {
	if !nkeys.IsValidPublicUserKey(u.Key) {
		return fmt.Errorf("%w: %q is no public key of a user", ErrValue, shorten(u.Key))
	}
	if u.Zone != zone {
		return fmt.Errorf("%w: user %s is of zone %q, not of %s", ErrValue, u.Key, shorten(u.Zone), zone)
	}
	if !u.Revoked.IsZero() && u.Name == "" && u.Role == "" {
		return nil
	}
	if err := conf.CheckUserName(u.Name); err != nil {
		return fmt.Errorf("%w: user %s: %w", ErrValue, u.Key, err)
	}
	if _, err := conf.ParseRole(string(u.Role)); err != nil {
		return fmt.Errorf("%w: user %s: %w", ErrValue, u.Key, err)
	}
	return nil
}
