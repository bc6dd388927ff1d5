package conf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 4 << 20

// readFile takes over what the file says and notes in sources where each key was.
func (s *Settings) readFile(path string, sources map[string]string) error {
	content, err := readBounded(path, maxFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the configuration: %w: check the path; oclocks-startup init or join makes it for a node of a cluster, oclocks-config zone add NAME for a daemon alone", err)
		}
		return fmt.Errorf("read the configuration: %w", err)
	}
	return s.read(path, content, sources)
}

func (s *Settings) read(path string, content []byte, sources map[string]string) error {
	doc, _, err := parseYAML(path, content)
	if err != nil {
		return err
	}
	r := fileReader{path: path}
	return r.settings(s, doc.Content[0], sources)
}

// parseYAML gives the document in a file, which has one node as its content. If there is nothing but comments, empty is
// true and that node is a mapping without keys.
func parseYAML(path string, content []byte) (doc *yaml.Node, empty bool, err error) {
	nothing := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	doc = new(yaml.Node)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	switch err := decoder.Decode(doc); {
	case errors.Is(err, io.EOF):
		return nothing, true, nil
	case err != nil:
		return nil, false, &KeyError{Source: path, Problem: err.Error(), Fix: "expected YAML, such as listen: 127.0.0.1:4222"}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, false, &KeyError{Source: path, Problem: "there is more than one YAML document", Fix: "remove the lines of ---"}
	}
	if isNull(doc.Content[0]) {
		return nothing, true, nil
	}
	return doc, false, nil
}

// fileReader walks the nodes of a file, so that every error can name its line.
type fileReader struct{ path string }

func (r fileReader) at(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.path, n.Line) }

func (r fileReader) settings(s *Settings, root *yaml.Node, sources map[string]string) error {
	return r.mapping(root, "", func(key string, k, v *yaml.Node) error {
		sources[key] = r.at(k)
		if key == "zones" {
			zones, err := r.zones(v)
			if len(zones) > 0 {
				s.Zones, s.implicit = zones, false
			}
			return err
		}
		return setField(r, settingFields, s, key, k, v, "zones")
	})
}

func (r fileReader) zones(list *yaml.Node) ([]Zone, error) {
	if isNull(list) {
		return nil, nil
	}
	if list.Kind != yaml.SequenceNode {
		return nil, &KeyError{Key: "zones", Source: r.at(list), Problem: "is not a list", Fix: "expected lines such as - name: orders"}
	}
	zones := make([]Zone, 0, len(list.Content))
	for i, n := range list.Content {
		zone, err := r.zone(n, fmt.Sprintf("zones[%d]", i))
		if err == nil {
			err = zone.Validate()
		}
		if err != nil {
			var ke *KeyError
			if errors.As(err, &ke) && ke.Source == "" {
				ke.Source = r.at(n)
			}
			return nil, err
		}
		zones = append(zones, zone)
	}
	return zones, nil
}

func (r fileReader) zone(n *yaml.Node, prefix string) (z Zone, err error) {
	err = r.mapping(n, prefix, func(key string, k, v *yaml.Node) error {
		if key != "quota" {
			return setField(r, zoneFields, &z, key, k, v, "quota")
		}
		return r.mapping(v, prefix+".quota", func(key string, k, v *yaml.Node) error {
			return setField(r, quotaFields, &z.Quota, key, k, v)
		})
	})
	return z, err
}

// mapping calls do for each key of a mapping, and prefixes the key of its errors.
func (r fileReader) mapping(n *yaml.Node, prefix string, do func(key string, k, v *yaml.Node) error) error {
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return &KeyError{Key: prefix, Source: r.at(n), Problem: "is not a mapping", Fix: "expected lines such as key: value"}
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		err := do(k.Value, k, v)
		if line, twice := seen[k.Value]; twice && err == nil {
			err = &KeyError{Key: k.Value, Source: r.at(k), Problem: fmt.Sprintf("is there already in line %d", line), Fix: "remove one"}
		}
		seen[k.Value] = k.Line
		var ke *KeyError
		if errors.As(err, &ke) && prefix != "" && ke.Key == k.Value {
			ke.Key = prefix + "." + ke.Key
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setField hands a scalar to the field that its key names; others are keys that the caller treats itself.
func setField[T any](r fileReader, table []field[T], t *T, key string, k, v *yaml.Node, others ...string) error {
	f, err := find(table, key)
	if err != nil {
		names := others
		for _, f := range table {
			names = append(names, f.name)
		}
		unknown := unknownKey(key, names)
		unknown.Source = r.at(k)
		return unknown
	}
	if f.many && v.Kind == yaml.SequenceNode {
		return setMany(r, f, t, key, v)
	}
	if v.Kind != yaml.ScalarNode {
		return &KeyError{Key: key, Source: r.at(v), Problem: "is a list or mapping", Fix: "expected one value (" + f.kind + ")"}
	}
	if isNull(v) {
		return &KeyError{Key: key, Source: r.at(v), Problem: "has no value", Fix: "write one (" + f.kind + "), or remove the key"}
	}
	if err := f.set(t, v.Value); err != nil {
		return &KeyError{Key: key, Source: r.at(v), Problem: err.Error()}
	}
	return nil
}

// setMany hands the values of a list to a field that takes several.
func setMany[T any](r fileReader, f field[T], t *T, key string, list *yaml.Node) error {
	if len(list.Content) == 0 {
		return nil
	}
	values := make([]string, len(list.Content))
	for i, n := range list.Content {
		if n.Kind != yaml.ScalarNode || isNull(n) || strings.Contains(n.Value, ",") {
			return &KeyError{Key: fmt.Sprintf("%s[%d]", key, i), Source: r.at(n), Problem: "is not one value", Fix: "expected " + f.kind}
		}
		values[i] = n.Value
	}
	if err := f.set(t, strings.Join(values, ",")); err != nil {
		return &KeyError{Key: key, Source: r.at(list), Problem: err.Error()}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// readSecret is readBounded for a file that only its owner may read: ErrUnsafeFile otherwise.
func readSecret(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s: %w (mode %04o), and whoever reads it can make credentials: chmod 600 %s", path, ErrUnsafeFile, mode, path)
	}
	return readBounded(path, limit)
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return content, err
}
