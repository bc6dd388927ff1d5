package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const (
	routesFile = "routes.json"
	maxRoutes  = 4 << 20 // bytes
)

// SaveRoutes keeps in a data directory where the other nodes of the cluster are: addresses HOST:PORT of cluster_listen, by
// the nodes' identifiers.
func SaveRoutes(data string, known map[string][]string) error {
	content, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the addresses of the other nodes: %w", err)
	}
	if err := writeFile(filepath.Join(data, routesFile), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep the addresses of the other nodes: %w", err)
	}
	return nil
}

// SavedRoutes reads what SaveRoutes wrote; empty if that never happened.
func SavedRoutes(data string) (map[string][]string, error) {
	path := filepath.Join(data, routesFile)
	content, err := readBounded(path, maxRoutes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string][]string{}, nil
	case err != nil:
		return nil, fmt.Errorf("read the addresses of the other nodes: %w", err)
	}
	var known map[string][]string
	if err := json.Unmarshal(content, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for node, addresses := range known {
		if err := CheckNodeID(node); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, address := range addresses {
			if err := checkReachable(address); err != nil {
				return nil, fmt.Errorf("%s: node %s: %w", path, node, err)
			}
		}
	}
	return known, nil
}
