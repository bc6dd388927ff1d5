package setup

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/enroll"
)

// maxToken is the length of the longest join token, in bytes.
const maxToken = 16 << 10

// ReadToken gives a join token that is TEXT, @FILE, or - for all of in. It is checked, also whether it has expired is not:
// the cluster's clock counts.
func ReadToken(text string, in io.Reader) (string, error) {
	switch path, isFile := strings.CutPrefix(text, "@"); {
	case text == "-":
		content, err := io.ReadAll(io.LimitReader(in, maxToken))
		if err != nil {
			return "", fmt.Errorf("read the join token: %w", err)
		}
		text = string(content)
	case isFile:
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the join token: %w", err)
		}
		text = string(content)
	}
	text = strings.TrimSpace(text)
	if _, err := conf.ParseJoinToken(text); err != nil {
		return "", err
	}
	return text, nil
}

// Join makes a node that joins the cluster of a token, from a Node that Fill has completed: it asks a running daemon for
// the keys, and writes them and the configuration file. The daemon has to be started then. Errors are those of
// enroll.Join, after which it can be tried again.
func Join(ctx context.Context, n *Node, token string) (*Made, error) {
	joined, err := enroll.Join(ctx, token, n.Data, n.Name)
	if err != nil {
		return nil, err
	}
	m := &Made{ID: joined.Node, Cluster: joined.Cluster, Config: n.Config}
	known, err := conf.SavedRoutes(n.Data)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if id != m.ID {
			m.Routes = append(m.Routes, known[id]...)
		}
	}
	settings := n.settings(joined.Cluster)
	if routes := m.Routes[:min(len(m.Routes), conf.MaxJoin)]; len(routes) > 0 {
		settings = append(settings, conf.KeyValue{Key: "join", Value: strings.Join(routes, ",")})
	}
	comment := "# Configuration of oclocks-daemon on this node. Zones and shared settings are in the cluster: oclocks-config changes\n" +
		"# them there.\n"
	if err := conf.NewFile(n.Config, comment, settings, nil); err != nil {
		return nil, fmt.Errorf("%s has joined the cluster %s, but its configuration file could not be written: %w; write one with at least %s",
			n.Data, joined.Cluster, err, lines(settings))
	}
	return m, nil
}

func lines(settings []conf.KeyValue) string {
	all := make([]string, len(settings))
	for i, s := range settings {
		all[i] = s.Key + ": " + s.Value
	}
	return strings.Join(all, "; ")
}
