package setup

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/cli/ask"
)

// Ports that are proposed.
const (
	clientPort = "4222"
	routePort  = "6222"
)

// question is one thing that a node is told.
type question struct {
	flag     string
	text     string
	at       *string
	def      func() string // what an empty answer means
	required bool          // without somebody to ask, it has to be given
	check    func(string) error
}

// Fill completes what was not given: it asks if somebody is there, and takes the defaults otherwise. given says whether a
// flag was given. ErrMissing, with all that is missing, if something has no default. Nothing is written.
func (n *Node) Fill(a *ask.Asker, first bool, given func(flag string) bool) error {
	var missing []string
	for _, q := range n.questions(first) {
		switch {
		case given(q.flag):
			if q.check != nil {
				if err := q.check(*q.at); err != nil {
					return fmt.Errorf("--%s: %w", q.flag, err)
				}
			}
		case a.Able():
			answer, err := a.Text(q.text, q.def(), q.check)
			if err != nil {
				return err
			}
			*q.at = answer
		case q.required:
			missing = append(missing, "--"+q.flag)
		default:
			*q.at = q.def()
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %w: give it, or run this on a terminal to be asked", strings.Join(missing, " and "), ErrMissing)
	}
	if first && a.Able() && !given("user") && !n.Open {
		if err := n.askUser(a); err != nil {
			return err
		}
	}
	if first && n.User != "" && n.Out == "" {
		n.Out = filepath.Join(filepath.Dir(n.Config), n.Zone+"-"+n.User+".creds")
	}
	if err := n.absolute(); err != nil {
		return err
	}
	if err := n.validate(first); err != nil {
		return inFlags(err)
	}
	return n.untouched()
}

func (n *Node) askUser(a *ask.Asker) error {
	user, err := a.Text("First user, who becomes admin of that zone; - for none", "admin", func(s string) error {
		if s == "-" {
			return nil
		}
		return conf.CheckUserName(s)
	})
	if err == nil && user != "-" {
		n.User = user
	}
	return err
}

// questions are in the order in which they are asked.
func (n *Node) questions(first bool) []question {
	fixed := func(s string) func() string { return func() string { return s } }
	all := []question{
		{flag: "data", text: "Data directory", at: &n.Data, def: fixed("/var/lib/oclocks"), required: true, check: n.checkData},
		{
			flag: "config", text: "Configuration file to write", at: &n.Config, check: nonEmpty,
			def: func() string { return filepath.Join(n.Data, "oclocks.yaml") },
		},
		{flag: "node", text: "Name of this node", at: &n.Name, def: hostname, check: nonEmpty},
		{flag: "location", text: "Where it is, such as eu/fra/rack7; empty for nothing", at: &n.Location, def: fixed("")},
	}
	if first {
		all = append(all, question{flag: "cluster", text: "Name of the cluster", at: &n.Cluster, def: fixed("oclocks"), check: nonEmpty})
	}
	all = append(all,
		question{
			flag: "cluster-listen", text: "Address for the other nodes", at: &n.ClusterListen, required: true, check: free,
			def: func() string { return net.JoinHostPort(ownHost(), routePort) },
		},
		question{
			flag: "listen", text: "Address for clients", at: &n.Listen, check: free,
			def: func() string { return net.JoinHostPort(n.clientHost(), clientPort) },
		},
		question{flag: "http", text: "Address for health and metrics, or off", at: &n.HTTP, def: fixed("127.0.0.1:8222"), check: freeOrOff},
	)
	if first {
		all = append(all, question{
			flag: "zone", text: "First zone, a tenant with locks of its own", at: &n.Zone, def: fixed(conf.DefaultZone), check: conf.CheckZoneName,
		})
	}
	return all
}

// checkData looks at the directory at once, so that nobody answers ten questions in vain.
func (n *Node) checkData(dir string) error {
	if dir == "" {
		return errors.New("a node needs a directory for its identifier, keys and locks")
	}
	return (&Node{Data: dir}).untouched()
}

func nonEmpty(s string) error {
	if s == "" {
		return errors.New("expected something")
	}
	return nil
}

func free(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%q is not an address: expected HOST:PORT", address)
	}
	return listenable(address)
}

func freeOrOff(address string) error {
	if address == "off" {
		return nil
	}
	return free(address)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	return name
}

// clientHost is where clients are served if nothing is said: where other nodes are, but an open zone on loopback only.
func (n *Node) clientHost() string {
	if n.Open {
		return "127.0.0.1"
	}
	host, _, err := net.SplitHostPort(n.ClusterListen)
	if err != nil {
		return "127.0.0.1"
	}
	return cmp.Or(host, "0.0.0.0")
}

// ownHost is an address of this machine that others may reach.
func ownHost() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return "127.0.0.1"
}

// inFlags names the flag where the daemon's error names the key of the file.
func inFlags(err error) error {
	var ke *conf.KeyError
	if !errors.As(err, &ke) {
		return err
	}
	flag := strings.ReplaceAll(ke.Key, "_", "-")
	if strings.HasPrefix(ke.Key, "zones") {
		flag = "zone"
	}
	named := *ke
	named.Key = "--" + flag
	if strings.Contains(ke.Fix, "--allow-open-zone") {
		named.Fix = "leave --open out, so that users need credentials, or listen on 127.0.0.1"
	}
	return &named
}
