package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/opencluster/oclocks/broker/admin"
)

// TokenHelp explains join tokens, for help texts.
const TokenHelp = `Print a join token, which lets one new node into the cluster of this one. It is a secret until it was used or has expired.

Run it on a node of the cluster, as the user that the daemon runs as, and tell it the daemon's configuration file or data
directory. The token alone goes to the standard output.`

// TokenRequest is what the commands that print a join token are told.
type TokenRequest struct {
	Data string        // directory of a node
	Ask  string        // address of the node to ask; "": the daemon with that directory
	URLs []string      // where the new node asks; none: where the cluster's nodes serve clients
	Life time.Duration // how long the token counts
	JSON bool
}

// AddFlags adds the flags that such a command has; at is the name of the one for URLs.
func (t *TokenRequest) AddFlags(f *pflag.FlagSet, at string) {
	f.DurationVar(&t.Life, "ttl", t.Life, "how long it counts, 1m to 168h")
	f.StringSliceVar(&t.URLs, at, nil,
		"`ADDRESS` where the new node reaches the clients' port of a node, several with commas (default those that the cluster knows)")
	f.BoolVar(&t.JSON, "json", false, "print JSON")
}

// Print prints a token to out, and what to do with it to hints.
func (t *TokenRequest) Print(ctx context.Context, out, hints io.Writer) error {
	urls := t.URLs
	if len(urls) == 0 {
		var err error
		if urls, err = known(ctx, t.Data, t.Ask); err != nil {
			return err
		}
	}
	i, err := Invite(t.Data, urls, t.Life)
	if err != nil {
		return err
	}
	if t.JSON {
		return json.NewEncoder(out).Encode(i)
	}
	if _, err := fmt.Fprintln(out, i.Token); err != nil {
		return fmt.Errorf("print the token: %w", err)
	}
	fmt.Fprintf(hints, "It lets one node in, until %s, by way of %s. On the new machine:\n  oclocks-startup join --token TOKEN\n",
		i.Expires.Format(time.RFC3339), strings.Join(i.URLs, " "))
	if i.Local() {
		fmt.Fprintln(hints, "Only this machine reaches that address. For another one, name an address that it reaches with --at.")
	}
	return nil
}

// known asks a node where the nodes of its cluster are.
func known(ctx context.Context, data, url string) ([]string, error) {
	client, err := admin.Dial(data, url)
	if err != nil {
		return nil, fmt.Errorf("ask where the nodes of the cluster are: %w. Or name the addresses for the new node with --at", err)
	}
	defer client.Close()
	state, err := client.State(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask where the nodes of the cluster are: %w. Or name the addresses for the new node with --at", err)
	}
	return ClientURLs(state.Nodes), nil
}
