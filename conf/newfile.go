package conf

import (
	"errors"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

// KeyValue is one setting as text.
type KeyValue struct{ Key, Value string }

// NewFile writes a new configuration file: the comment, whose lines begin with #, then the settings, then the zones. The
// error is an fs.ErrExist if there is a file of that name, and a *KeyError if a daemon would not start with it; then there
// is none.
func NewFile(path, comment string, settings []KeyValue, zones []Zone) error {
	content, err := editYAML(path, []byte(comment), func(root *yaml.Node) error {
		for _, s := range settings {
			f, err := find(settingFields, s.Key)
			if err != nil {
				return err
			}
			setChild(root, s.Key, scalar(s.Value, f.kind))
		}
		if len(zones) == 0 {
			return nil
		}
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, z := range zones {
			list.Content = append(list.Content, zoneNode(z))
		}
		setChild(root, "zones", list)
		return nil
	})
	if err != nil {
		return err
	}
	if err := createFile(path, content, 0o644); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("configuration file %s: %w", path, fs.ErrExist)
		}
		return fmt.Errorf("write the configuration file: %w", err)
	}
	return nil
}
