package conf

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// handshake connects two nodes, and gives what each says of the other.
func handshake(t *testing.T, client, server *tls.Config) (byClient, byServer error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(b, server)
		err := conn.HandshakeContext(t.Context())
		b.Close()
		done <- err
	}()
	conn := tls.Client(a, client)
	err := conn.HandshakeContext(t.Context())
	if err == nil {
		_, err = conn.Read(make([]byte, 1)) // what the server thinks of the certificate comes after it
		var alert tls.AlertError
		if !errors.As(err, &alert) {
			err = nil
		}
	}
	a.Close()
	return err, <-done
}

func identityIn(t *testing.T, dir string) *Identity {
	t.Helper()
	node, err := NodeID(dir)
	if err != nil {
		t.Fatal(err)
	}
	i, err := CreateIdentity(dir, "shop", node)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func newIdentity(t *testing.T, authority *Authority) *Identity {
	t.Helper()
	i, err := NewIdentity(authority, newNodeID())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestNodesOfOneClusterKnowEachOther(t *testing.T) {
	a := identityIn(t, t.TempDir())
	b := newIdentity(t, a.Authority())
	if err1, err2 := handshake(t, a.TLS(), b.TLS()); err1 != nil || err2 != nil {
		t.Errorf("got %v, %v", err1, err2)
	}
	if name := a.leaf.Leaf.Subject.CommonName; name != a.Node() || a.Authority().Cluster() != "shop" {
		t.Errorf("the certificate is of %s", name)
	}
	if err := a.leaf.Leaf.VerifyHostname(a.Node() + ".node.oclocks"); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"ca.pem", "node.pem"} {
		info, err := os.Stat(filepath.Join(a.dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

func TestWhoIsNotOfTheClusterIsRefused(t *testing.T) {
	authority, err := NewAuthority("shop")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := NewAuthority("shop") // the same name does not help
	if err != nil {
		t.Fatal(err)
	}
	good := newIdentity(t, authority)
	bad := newIdentity(t, foreign)
	// A foreign node that trusts everybody, so that only the other side can refuse.
	careless := bad.TLS()
	careless.InsecureSkipVerify, careless.ClientAuth = true, tls.RequestClientCert
	none := careless.Clone()
	none.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	for name, client := range map[string]*tls.Config{"foreign": careless, "without a certificate": none} {
		if _, byServer := handshake(t, client, good.TLS()); byServer == nil {
			t.Errorf("%s: is let in", name)
		}
	}
	if byClient, _ := handshake(t, good.TLS(), careless); byClient == nil {
		t.Error("a foreign server is believed")
	}
	old := careless.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	old.GetClientCertificate = good.TLS().GetClientCertificate
	if _, byServer := handshake(t, old, good.TLS()); byServer == nil {
		t.Error("TLS 1.2 is spoken")
	}

	// The authority is good for nodes only, and a node's certificate signs nothing.
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	web := &x509.Certificate{DNSNames: []string{"bank.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := certificate(web, authority.cert, public, authority.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: good.pool(), DNSName: "bank.example"}); err == nil {
		t.Error("the authority is good for other names")
	}
	raw, err = certificate(good.leaf.Leaf, good.leaf.Leaf, public, good.leaf.PrivateKey.(ed25519.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	forged := good.TLS()
	forged.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{raw, good.leaf.Certificate[0]}, PrivateKey: key}, nil
	}
	if _, byServer := handshake(t, forged, good.TLS()); byServer == nil {
		t.Error("a certificate that a node signed is believed")
	}
}

func TestCertificatesAreRenewed(t *testing.T) {
	dir := t.TempDir()
	a := identityIn(t, dir)
	first := a.leaf.Leaf
	again, err := OpenIdentity(dir, a.Node())
	if err != nil || !again.leaf.Leaf.Equal(first) {
		t.Errorf("a new certificate without need: %v", err)
	}
	now := time.Now()
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{nodeLife * 6 / 10, false}, {nodeLife * 7 / 10, true}, {nodeLife * 2, true}} {
		i, err := OpenIdentity(dir, a.Node())
		if err != nil {
			t.Fatal(err)
		}
		i.dir = ""
		if err := i.ensure(now.Add(c.at)); err != nil {
			t.Fatal(err)
		}
		if renewed := !i.leaf.Leaf.Equal(first); renewed != c.want {
			t.Errorf("after %s: renewed %t", c.at, renewed)
		}
		if !i.signed(i.leaf.Leaf, now.Add(c.at)) {
			t.Errorf("after %s: not valid", c.at)
		}
	}

	// The authority is signed anew with the same key: old and new certificates count with both.
	before := a.pool()
	if err := a.renewAuthority(now.Add(authorityLife * 6 / 10)); err != nil {
		t.Fatal(err)
	}
	if !a.authority.cert.Equal(again.authority.cert) {
		t.Error("the authority was renewed without need")
	}
	if err := a.renewAuthority(now.Add(authorityLife * 7 / 10)); err != nil {
		t.Fatal(err)
	}
	if a.authority.cert.Equal(again.authority.cert) {
		t.Error("the authority was not renewed")
	}
	newer := newIdentity(t, a.authority)
	if _, err := newer.leaf.Leaf.Verify(x509.VerifyOptions{Roots: before, DNSName: nodeDomain}); err != nil {
		t.Errorf("a new certificate with the old authority: %v", err)
	}
	late := now.Add(authorityLife * 7 / 10)
	again.dir = ""
	if err := again.renew(late); err != nil || !a.signed(again.leaf.Leaf, late) {
		t.Errorf("a certificate by the old authority does not count with the new one: %v", err)
	}
	if reread, err := OpenIdentity(dir, a.Node()); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("an authority of the future: %v, %v", reread, err)
	}
	if err := a.renewAuthority(now.Add(-48 * time.Hour)); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedCertificates(t *testing.T) {
	dir := t.TempDir()
	a := identityIn(t, dir)
	caPath, nodePath := filepath.Join(dir, "tls", "ca.pem"), filepath.Join(dir, "tls", "node.pem")
	ca, err := os.ReadFile(caPath)
	if err != nil {
		t.Fatal(err)
	}
	other, err := identityIn(t, t.TempDir()).Authority().Encode()
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	// The node's own can be made again.
	for name, content := range map[string]string{"empty": "", "cut": string(ca[:100]), "the authority's": string(ca)} {
		write(nodePath, content, 0o600)
		if i, err := OpenIdentity(dir, a.Node()); err != nil || i.leaf.Leaf.Subject.CommonName != a.Node() {
			t.Errorf("%s: %v", name, err)
		}
	}
	renamed, err := OpenIdentity(dir, newNodeID())
	if err != nil || renamed.leaf.Leaf.Subject.CommonName == a.Node() {
		t.Errorf("another node: %v", err)
	}
	// The cluster's cannot.
	cert, _, _ := strings.Cut(string(ca), "-----BEGIN PRIVATE")
	_, key, _ := strings.Cut(string(other), "-----BEGIN PRIVATE")
	node, err := os.ReadFile(nodePath)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"empty": "", "cut": cert, "another key": cert + "-----BEGIN PRIVATE" + key, "a node's": string(node)} {
		write(caPath, content, 0o600)
		_, err := OpenIdentity(dir, a.Node())
		if err == nil || !strings.Contains(err.Error(), "restore it") {
			t.Errorf("%s: got %v", name, err)
		}
		if now, err := os.ReadFile(caPath); err != nil || string(now) != content {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	write(caPath, string(ca), 0o640)
	if _, err := OpenIdentity(dir, a.Node()); !errors.Is(err, ErrUnsafeFile) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenIdentity(t.TempDir(), a.Node()); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Authority().Issue("x.y", a.leaf.Leaf.PublicKey); err == nil {
		t.Error("a certificate for what is no node")
	}
	if _, err := a.Authority().Issue(a.Node(), "key"); err == nil {
		t.Error("a certificate for what is no key")
	}
}
