package daemons

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrNoNamespaces says that this machine or this user cannot make network namespaces; the text around it says why.
var ErrNoNamespaces = errors.New("network namespaces cannot be made here")

// hubVariable says that a process runs in the hub of its own network.
const hubVariable = "OCLOCKS_HUB"

// Network is a hub, the namespace in which this process is, and a namespace for each of some hosts, which reach each other
// through it. All of it vanishes with this process and its children. Host i has the address 10.77.i.2; the hub is 10.77.i.1
// there. Methods must not be called at the same time.
type Network struct{ cuts map[string]int }

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
	return &Network{cuts: make(map[string]int)}, ip("link set lo up")
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
func (n *Network) Cut(i, j int) error {
	rule := way(i, j)
	if n.cuts[rule]++; n.cuts[rule] > 1 {
		return nil
	}
	return ip("rule add pref 100 " + rule + " blackhole")
}

// Mend takes a cut back.
func (n *Network) Mend(i, j int) error {
	rule := way(i, j)
	if n.cuts[rule]--; n.cuts[rule] > 0 {
		return nil
	}
	delete(n.cuts, rule)
	return ip("rule del pref 100 " + rule + " blackhole")
}

func way(i, j int) string { return fmt.Sprintf("from %s to %s", Address(i), Address(j)) }

// ip runs the command ip.
func ip(args string) error {
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil { //nolint:gosec // our own arguments
		return fmt.Errorf("ip %s: %w: %s", args, err, out)
	}
	return nil
}
