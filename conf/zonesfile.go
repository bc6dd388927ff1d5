package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const (
	zonesFile = "zones.json"
	maxZones  = 4 << 20 // bytes
)

// SaveZones keeps in a data directory which zones the cluster has, so that a node lets their clients in as soon as it starts
// again, before it has heard from the others. Nothing secret is in it.
func SaveZones(data string, zones []Zone) error {
	content, err := json.MarshalIndent(zones, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the zones: %w", err)
	}
	if err := writeFile(filepath.Join(data, zonesFile), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep the zones: %w", err)
	}
	return nil
}

// SavedZones reads what SaveZones wrote; none if that never happened.
func SavedZones(data string) ([]Zone, error) {
	path := filepath.Join(data, zonesFile)
	content, err := readBounded(path, maxZones)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the zones: %w", err)
	}
	var zones []Zone
	if err := json.Unmarshal(content, &zones); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, z := range zones {
		if err := z.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return zones, nil
}
