package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/opencluster/oclocks/bench/rig"
)

// figures is the file: of bench/peers and of bench.
type figures struct {
	Machine string  `json:"machine"`
	Peers   []peer  `json:"peers"`
	Tables  []table `json:"tables"`
}

type peer struct {
	Key, Name, Version, Settings, Lacks, Skipped string
	Rounds                                       []round
}

type round struct {
	When, Error string
	Raw         map[string]float64
	Same        map[string]float64 `json:"raw_same_node"`
	Peer        map[string]float64
}

type table struct {
	Title   string
	When    string
	Columns []string
	Notes   []string
	Rows    []row
}

type row struct {
	Name   string
	Values []value
}

type value struct {
	Number float64
	Unit   string
}

func load(path string) (*figures, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	var all figures
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read the figures in %s: %w", path, err)
	}
	return &all, nil
}

// median is that of all rounds that have the figure.
func (p *peer) median(name string) (float64, bool) {
	var all []float64
	for _, r := range p.Rounds {
		if v, ok := r.Peer[name]; ok {
			all = append(all, v)
		}
	}
	return rig.Median(all), len(all) > 0
}

// ratio is the median of what the figure is to that of plain NATS in the same round.
func (p *peer) ratio(name string) (float64, bool) {
	var all []float64
	for _, r := range p.Rounds {
		if v, ok := r.Peer[name]; ok && r.Raw[name] > 0 {
			all = append(all, v/r.Raw[name])
		}
	}
	return rig.Median(all), len(all) > 0
}

// raw is the median of the yardstick over all rounds of all peers.
func (f *figures) raw(name string, same bool) float64 {
	var all []float64
	for _, p := range f.Peers {
		for _, r := range p.Rounds {
			if same {
				all = append(all, r.Same[name])
			} else {
				all = append(all, r.Raw[name])
			}
		}
	}
	return rig.Median(all)
}

func (f *figures) peer(key string) *peer {
	for i := range f.Peers {
		if f.Peers[i].Key == key {
			return &f.Peers[i]
		}
	}
	return &peer{}
}

// cell is a number of a table of bench: the first one whose title, row and column begin so.
func (f *figures) cell(title, name, column string) (float64, bool) {
	for _, t := range f.Tables {
		if !strings.HasPrefix(t.Title, title) {
			continue
		}
		for _, r := range t.Rows {
			for i, v := range r.Values {
				if strings.HasPrefix(r.Name, name) && i < len(t.Columns) && t.Columns[i] == column {
					return v.Number, true
				}
			}
		}
	}
	return 0, false
}
