package daemons

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// ErrNoNamespaces says that this machine or this user cannot make network namespaces; the text around it says why.
var ErrNoNamespaces = errors.New("network namespaces cannot be made here")

// hubVariable says that a process runs in the hub of its own network.
const hubVariable = "OCLOCKS_HUB"

// Network is a hub, the namespace in which this process is, and a namespace for each of some hosts, which reach each other
// through it. All of it vanishes with this process and its children. Host i has the address 10.77.i.2; the hub is 10.77.i.1
// there. Methods must not be called at the same time.
type Network struct {
	cuts  map[Way]int
	voids map[Way]bool
}

// Way is what goes from one host to another.
type Way struct {
	From, To int
	Port     int // only that of TCP connections to or from this port; 0: all
}

// InHub says whether this process was started with IntoHub.
func InHub() bool { return os.Getenv(hubVariable) != "" }

// IntoHub has a command run in the hub of a network of its own, which OpenNetwork opens there. ErrNoNamespaces.
func IntoHub(cmd *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: only root may", ErrNoNamespaces)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("%w: the command ip is missing, of the Debian package iproute2", ErrNoNamespaces)
	}
	dieWithParent(cmd)
	unshare(cmd)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, hubVariable+"=1")
	return nil
}

// OpenNetwork makes the network around this process, which must be in its hub.
func OpenNetwork() (*Network, error) {
	if !InHub() {
		return nil, errors.New("open a network: this process is not in its hub")
	}
	if err := privateNames(); err != nil {
		return nil, fmt.Errorf("open a network: %w: %w", ErrNoNamespaces, err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return nil, fmt.Errorf("switch on routing: %w", err)
	}
	for _, args := range []string{"link set lo up", "netns add void", fmt.Sprintf("route add local default dev lo table %d", localTable)} {
		if err := ip(args); err != nil {
			return nil, err
		}
	}
	return &Network{cuts: make(map[Way]int), voids: make(map[Way]bool)}, nil
}

// Add makes host i, 1 to 254.
func (n *Network) Add(i int) error {
	ns := fmt.Sprint("n", i)
	for _, args := range []string{
		"netns add " + ns,
		fmt.Sprintf("link add h%d type veth peer name %s netns %s", i, ns, ns),
		fmt.Sprintf("addr add 10.77.%d.1/24 dev h%d", i, i),
		fmt.Sprintf("link set h%d up", i),
		fmt.Sprintf("-n %s addr add 10.77.%d.2/24 dev %s", ns, i, ns),
		fmt.Sprintf("-n %s link set %s up", ns, ns),
		fmt.Sprintf("-n %s link set lo up", ns),
		fmt.Sprintf("-n %s route add default via 10.77.%d.1", ns, i),
	} {
		if err := ip(args); err != nil {
			return err
		}
	}
	return nil
}

// Address is the address of host i.
func Address(i int) string { return fmt.Sprintf("10.77.%d.2", i) }

// At is what a command line must begin with to run at host i.
func At(i int) []string { return []string{"ip", "netns", "exec", fmt.Sprint("n", i)} }

// Cut stops everything that goes from host i to host j; what is on its way back still arrives. Cuts are counted: each one
// wants its Mend.
func (n *Network) Cut(i, j int) error { return n.CutWay(Way{From: i, To: j}) }

// Mend takes a cut back.
func (n *Network) Mend(i, j int) error { return n.MendWay(Way{From: i, To: j}) }

// CutWay stops everything that goes a way, as Cut does.
func (n *Network) CutWay(way Way) error {
	if n.cuts[way]++; n.cuts[way] > 1 {
		return nil
	}
	if err := n.void(way); err != nil {
		return err
	}
	return n.rules("add", way)
}

// MendWay takes a cut back.
func (n *Network) MendWay(way Way) error {
	if n.cuts[way]--; n.cuts[way] > 0 {
		return nil
	}
	delete(n.cuts, way)
	return n.rules("del", way)
}

// cutRules come before those of Intercept, and both before the main table's.
const (
	cutRules       = 100
	interceptRules = 200
	localTable     = 99
	voidTables     = 1000
	portTables     = voidTables + 1<<16 // of ways of one port
)

// selectors are what rules say of the packets of a way.
func (w Way) selectors() (list []string) {
	hosts := fmt.Sprintf("from %s to %s", Address(w.From), Address(w.To))
	if w.Port == 0 {
		return []string{hosts}
	}
	return []string{fmt.Sprintf("%s ipproto tcp dport %d", hosts, w.Port), fmt.Sprintf("%s ipproto tcp sport %d", hosts, w.Port)}
}

// device and table are where the packets of a way vanish.
func (w Way) device() string {
	if w.Port != 0 {
		return fmt.Sprintf("w%d-%d", w.From, w.To)
	}
	return fmt.Sprintf("v%d-%d", w.From, w.To)
}

func (w Way) table() int {
	if w.Port != 0 {
		return portTables + 256*w.From + w.To
	}
	return voidTables + 256*w.From + w.To
}

// rules leads a way into the void.
func (n *Network) rules(what string, way Way) error {
	for _, packets := range way.selectors() {
		if err := ip(fmt.Sprintf("rule %s pref %d %s lookup %d", what, cutRules, packets, way.table())); err != nil {
			return err
		}
	}
	return nil
}

// void makes the device into which the packets of a way vanish: a device and not a blackhole route, because a device
// counts them. Its other end is in a namespace where nobody listens.
func (n *Network) void(way Way) error {
	if n.voids[way] {
		return nil
	}
	dev := way.device()
	for _, args := range []string{
		fmt.Sprintf("link add %s type veth peer name %s netns void", dev, dev),
		fmt.Sprintf("link set %s arp off up", dev),
		fmt.Sprintf("-n void link set %s up", dev),
		fmt.Sprintf("route add default dev %s table %d", dev, way.table()),
	} {
		if err := ip(args); err != nil {
			return err
		}
	}
	n.voids[way] = true
	return nil
}

// Dropped is how many packets from host i to host j were stopped by cuts of all that goes there so far.
func (n *Network) Dropped(i, j int) (packets uint64, err error) {
	return n.DroppedOf(Way{From: i, To: j})
}

// DroppedOf is how many packets were stopped by cuts of a way so far.
func (n *Network) DroppedOf(way Way) (packets uint64, err error) {
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return 0, fmt.Errorf("count packets: %w", err)
	}
	dev := way.device() + ":"
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 10 && f[0] == dev { // after 8 columns of what was received: bytes, packets
			if packets, err = strconv.ParseUint(f[10], 10, 64); err != nil {
				return 0, fmt.Errorf("count packets: %w", err)
			}
		}
	}
	return packets, nil
}

// Intercept leads all packets between hosts i and j, or those of connections to or from one port, to sockets of this process that have
// one of their addresses (IP_TRANSPARENT): connections that there are break. Cuts still count.
func (n *Network) Intercept(i, j, port int) error { return n.intercept("add", i, j, port) }

// Release takes an Intercept back: connections that there are break.
func (n *Network) Release(i, j, port int) error { return n.intercept("del", i, j, port) }

func (n *Network) intercept(what string, i, j, port int) error {
	for _, way := range []Way{{i, j, port}, {j, i, port}} {
		for _, packets := range way.selectors() {
			// Only what comes in: what this process sends in a host's name goes its way.
			if err := ip(fmt.Sprintf("rule %s pref %d %s iif h%d lookup %d", what, interceptRules, packets, way.From, localTable)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ip runs the command ip.
func ip(args string) error {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil { //nolint:gosec // our own arguments
		return fmt.Errorf("ip %s: %w: %s", args, err, out)
	}
	return nil
}
