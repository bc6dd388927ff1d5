package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// keepTables puts tables into a JSON file, in the place of those with the same title. What else the file has stays.
func keepTables(path string, fresh ...table) error {
	if path == "" {
		return nil
	}
	all := make(map[string]json.RawMessage)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &all); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	var tables []table
	if old, ok := all["tables"]; ok {
		if err := json.Unmarshal(old, &tables); err != nil {
			return fmt.Errorf("read the tables of %s: %w", path, err)
		}
	}
	for _, t := range fresh {
		if i := slices.IndexFunc(tables, func(o table) bool { return o.Title == t.Title }); i >= 0 {
			tables[i] = t
		} else {
			tables = append(tables, t)
		}
	}
	if all["tables"], err = json.Marshal(tables); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(all, "", " "); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
