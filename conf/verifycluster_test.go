package conf

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// daemonAt answers as the cluster_listen of a node's daemon does.
func daemonAt(t *testing.T, identity *Identity, node, cluster string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", identity.TLS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "INFO {\"server_name\":%q,\"cluster\":%q}\r\n", node, cluster)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func clusterSettings(data string) *Settings {
	s := Default()
	s.Listen, s.HTTP, s.Data, s.ClusterListen, s.Cluster = "127.0.0.1:0", "off", data, "127.0.0.1:0", "shop"
	return s
}

func TestVerifyOfACluster(t *testing.T) {
	s := clusterSettings(t.TempDir())
	own := identityIn(t, s.Data)
	peer, foreign := newIdentity(t, own.Authority()), identityIn(t, t.TempDir())
	there, elsewhere := daemonAt(t, peer, peer.Node(), "shop"), daemonAt(t, peer, peer.Node(), "store")
	other := daemonAt(t, foreign, foreign.Node(), "shop")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	s.Join = []string{there, elsewhere, other, nobody}
	if err := SaveRoutes(s.Data, map[string][]string{peer.Node(): {there}, own.Node(): {"192.0.2.1:1"}}); err != nil {
		t.Fatal(err)
	}
	got := verified(t, s)
	expect(t, got, "true certificates "+s.Data+"/tls: node "+own.Node()+" of cluster shop", "true cluster_listen 127.0.0.1:0: free",
		"true node at "+there+": is node "+peer.Node(), "false node at "+elsewhere+": is set to cluster store",
		"false node at "+other+": it is of another cluster", "false node at "+nobody+": nobody listens there")
	if n := strings.Count(got, "node at "+there); n != 1 || strings.Contains(got, "192.0.2.1") {
		t.Errorf("each other node once:\n%s", got)
	}

	// The node's own daemon, and somebody else, on its address.
	s.Join, s.ClusterListen = nil, daemonAt(t, own, own.Node(), "shop")
	expect(t, verified(t, s), "true cluster_listen "+s.ClusterListen+": in use by this node's daemon")
	s.ClusterListen = there
	expect(t, verified(t, s), "false cluster_listen "+there+": in use")
	s.ClusterListen = "192.0.2.1:6222"
	expect(t, verified(t, s), "false cluster_listen 192.0.2.1:6222: ")

	if err := os.WriteFile(filepath.Join(s.Data, "tls", "ca.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, verified(t, s), "false certificates "+s.Data+"/tls: ")
}

func TestVerifyOfANodeThatIsInNoClusterYet(t *testing.T) {
	s := clusterSettings(filepath.Join(t.TempDir(), "data"))
	expect(t, verified(t, s), "true certificates "+s.Data+"/tls: none yet")
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	s.Join = []string{plain.Addr().String()}
	expect(t, verified(t, s), "false certificates "+s.Data+"/tls: none, so no other node", "true node at "+plain.Addr().String()+": somebody listens there")

	a, err := NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	if s.Token, err = NewJoinToken(a, []string{"nats://10.0.0.1:4222"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	expect(t, verified(t, s), "true certificates", "true token: until ")
	s.Token = s.Token[:50]
	expect(t, verified(t, s), "false token: not a valid join token")
	s.Token = "@/absent"
	expect(t, verified(t, s), "false token: ")
	if _, err := os.Stat(s.Data); err == nil {
		t.Error("Verify made the directory")
	}
}
