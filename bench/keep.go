package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// keepTables puts tables into a JSON file. A table of the same title with the same columns gets the rows, in the place of those with the
// same name, so that parts of it can be measured one after the other; any other one of that title is replaced. What else the file has stays.
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
		t.When = time.Now().UTC().Format("2006-01-02 15:04 UTC")
		if i := slices.IndexFunc(tables, func(o table) bool { return o.Title == t.Title }); i >= 0 {
			tables[i] = t.over(tables[i])
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

// over is the table with the rows of an older one that it has not got, in their old places.
func (t table) over(old table) table {
	if !slices.Equal(t.Columns, old.Columns) {
		return t
	}
	rows := slices.Clone(old.Rows)
	for _, r := range t.Rows {
		if i := slices.IndexFunc(rows, func(o row) bool { return o.Name == r.Name }); i >= 0 {
			rows[i] = r
		} else {
			rows = append(rows, r)
		}
	}
	t.Rows = rows
	return t
}
