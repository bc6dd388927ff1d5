package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// SetKey writes the value of one setting into a configuration file, which is made if there is none. Comments and the
// order of the keys stay. The error is a *KeyError if there is no such key, or if a daemon would not start with it; then
// the file is as it was.
func SetKey(path, key, value string) error {
	f, err := find(settingFields, key)
	if err != nil {
		return err
	}
	var scratch Settings
	if err := f.set(&scratch, value); err != nil {
		return &KeyError{Key: key, Problem: err.Error()}
	}
	return editFile(path, func(root *yaml.Node) error {
		setChild(root, key, scalar(value, f.kind))
		return nil
	})
}

// AddZone writes a zone at the end of zones in a configuration file, which is made if there is none. ErrExists if there
// is a zone of that name.
func AddZone(path string, z Zone) error {
	if err := z.Validate(); err != nil {
		return err
	}
	return editFile(path, func(root *yaml.Node) error {
		zones := child(root, "zones")
		if zones == nil || isNull(zones) {
			zones = &yaml.Node{Kind: yaml.SequenceNode}
			setChild(root, "zones", zones)
		}
		if zoneIndex(zones, z.Name) >= 0 {
			return fmt.Errorf("zone %s: %w", z.Name, ErrExists)
		}
		zones.Style = 0 // not [], if it was empty
		zones.Content = append(zones.Content, zoneNode(z))
		return nil
	})
}

// RemoveZone takes a zone out of a configuration file. ErrNotFound if it is not there. The last one stays: without any, a
// daemon opens a zone to everybody.
func RemoveZone(path, name string) error {
	return editFile(path, func(root *yaml.Node) error {
		zones := child(root, "zones")
		i := -1
		if zones != nil {
			i = zoneIndex(zones, name)
		}
		switch {
		case i < 0:
			return fmt.Errorf("zone %s in %s: %w", name, path, ErrNotFound)
		case len(zones.Content) == 1:
			return fmt.Errorf("zone %s is the last one, and a broker without zones opens one to everybody: add another zone first, "+
				"or remove the key zones in %s if that is what you want", name, path)
		}
		zones.Content = slices.Delete(zones.Content, i, i+1)
		return nil
	})
}

// editFile replaces a file by what change makes of its top mapping, if a daemon would start with the result.
func editFile(path string, change func(root *yaml.Node) error) (err error) {
	if err := createFile(path, nil, 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the configuration file: %w", err)
	}
	unlock, err := lockFile(path)
	if err != nil {
		return fmt.Errorf("edit the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()

	content, err := readBounded(path, maxFile)
	if err != nil {
		return fmt.Errorf("edit the configuration: %w", err)
	}
	edited, err := editYAML(path, content, change)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("edit the configuration: %w", err)
	}
	if err := writeFile(path, edited, info.Mode().Perm()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// editYAML gives the new content. It is a *KeyError if a daemon would not start with that.
func editYAML(path string, content []byte, change func(root *yaml.Node) error) ([]byte, error) {
	doc, empty, err := parseYAML(path, content)
	if err != nil {
		return nil, err
	}
	var comments []byte
	if empty {
		if comments = bytes.TrimSpace(content); len(comments) > 0 { // they belong to no node
			comments = append(comments, '\n')
		}
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, &KeyError{Source: path, Problem: "is not a mapping", Fix: "expected lines such as key: value"}
	}
	if err := change(root); err != nil {
		return nil, err
	}
	edited, err := encodeYAML(doc)
	if err != nil {
		return nil, fmt.Errorf("edit the configuration: %w", err)
	}
	edited = append(comments, edited...)
	s := Default()
	if err := s.read(path, edited, map[string]string{}); err != nil {
		return nil, err
	}
	return edited, s.Validate()
}

func encodeYAML(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// child is the value of a key in a mapping, nil if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// setChild replaces the value of a key, with the comment that stands behind it, or adds the key at the end.
func setChild(mapping *yaml.Node, key string, value *yaml.Node) {
	if old := child(mapping, key); old != nil {
		value.LineComment, value.FootComment = old.LineComment, old.FootComment
		*old = *value
		return
	}
	mapping.Content = append(mapping.Content, scalar(key, "string"), value)
}

// scalar is one value, quoted if YAML took it for something else than text otherwise.
func scalar(value, kind string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	if kind != "bool" && kind != "number" {
		n.Tag = "!!str"
	}
	return n
}

func zoneIndex(zones *yaml.Node, name string) int {
	return slices.IndexFunc(zones.Content, func(z *yaml.Node) bool {
		n := child(z, "name")
		return n != nil && n.Value == name
	})
}

// zoneNode writes what differs from a zone with nothing but a name.
func zoneNode(z Zone) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	addFields(node, zoneFields, z, Zone{Open: z.Open})
	if z.Open {
		setChild(node, "open", scalar("true", "bool"))
	}
	quota := &yaml.Node{Kind: yaml.MappingNode}
	addFields(quota, quotaFields, z.Quota, Quota{})
	if len(quota.Content) > 0 {
		setChild(node, "quota", quota)
	}
	return node
}

func addFields[T any](node *yaml.Node, table []field[T], value, def T) {
	for _, f := range table {
		if v := f.get(&value); v != f.get(&def) {
			setChild(node, f.name, scalar(v, f.kind))
		}
	}
}
