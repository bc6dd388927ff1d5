package conf

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// Files in the directory tls of a data directory. Each holds a certificate and its key, so that the two are always of
// one another.
const (
	authorityFile = "ca.pem"
	nodeFile      = "node.pem"
	maxPEM        = 64 << 10 // bytes
)

// Identity is what one node proves to the others who it is with: a certificate that the cluster's authority signed. It
// renews itself: at the start of the daemon and while it runs, when less than a third of its life is left. Its methods
// may be called at the same time.
type Identity struct {
	node string
	dir  string // "" in memory

	mu        sync.Mutex
	authority *Authority
	leaf      *tls.Certificate
}

// NewIdentity makes a certificate for a node, in memory.
func NewIdentity(authority *Authority, node string) (*Identity, error) {
	i := &Identity{node: node, authority: authority}
	return i, i.renew(time.Now())
}

// CreateIdentity is OpenIdentity for the first node of a cluster: without an authority in the data directory it makes
// one, for a cluster of that name.
func CreateIdentity(data, cluster, node string) (*Identity, error) {
	if i, err := OpenIdentity(data, node); !errors.Is(err, ErrNotFound) {
		return i, err
	}
	authority, err := NewAuthority(cluster)
	if err != nil {
		return nil, err
	}
	content, err := authority.Encode()
	if err != nil {
		return nil, err
	}
	if err := makeDir(data, tlsDir(data)); err != nil {
		return nil, fmt.Errorf("make the directory of the certificates: %w", err)
	}
	// If another process is faster, its authority is the authority.
	if err := createFile(filepath.Join(tlsDir(data), authorityFile), content, secret); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write the certificate of the cluster: %w", err)
	}
	return OpenIdentity(data, node)
}

// OpenIdentity reads the certificates of a data directory, and makes or renews that of the node if need be. ErrNotFound if
// there is no authority, so that the node belongs to no cluster yet; ErrUnsafeFile if others than the owner can read the
// keys.
func OpenIdentity(data, node string) (*Identity, error) {
	i := &Identity{node: node, dir: tlsDir(data)}
	content, err := readSecret(filepath.Join(i.dir, authorityFile), maxPEM)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("certificate of the cluster: %w (%w): the node is of no cluster yet, and needs a join token", ErrNotFound, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the cluster: %w", err)
	}
	if i.authority, err = ParseAuthority(content); err != nil {
		return nil, fmt.Errorf("%s: %w: restore it from a backup or from another node", filepath.Join(i.dir, authorityFile), err)
	}
	now := time.Now()
	if err := i.renewAuthority(now); err != nil {
		return nil, err
	}
	path := filepath.Join(i.dir, nodeFile)
	content, err = readSecret(path, maxPEM)
	switch {
	case err == nil:
		// A file that is damaged, of another node, or of another authority is replaced: the authority is here.
		if cert, key, err := decodePair(content); err == nil {
			i.leaf = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the certificate of this node: %w", err)
	}
	return i, i.ensure(now)
}

// renewAuthority signs the authority's certificate anew with the same key. Nodes that still have the old one go on to
// accept what either of them signed.
func (i *Identity) renewAuthority(now time.Time) error {
	cert := i.authority.cert
	if now.Before(cert.NotBefore) {
		return fmt.Errorf("the certificate of the cluster begins at %s, and this machine's clock says %s: set the clock",
			cert.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if !old(cert, now) {
		return nil
	}
	renewed, err := selfSigned(i.authority.Cluster(), i.authority.key, now)
	if err != nil {
		return err
	}
	content, err := renewed.Encode()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(i.dir, authorityFile), content, secret); err != nil {
		return fmt.Errorf("renew the certificate of the cluster: %w", err)
	}
	i.authority = renewed
	return nil
}

// old says that less than a third of a certificate's life is left.
func old(cert *x509.Certificate, now time.Time) bool {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotAfter.Sub(now) < life/3
}

// ensure renews the node's certificate if it is missing, old, or does not prove that this is the node.
func (i *Identity) ensure(now time.Time) error {
	if i.leaf == nil || old(i.leaf.Leaf, now) || i.leaf.Leaf.Subject.CommonName != i.node || !i.signed(i.leaf.Leaf, now) {
		return i.renew(now)
	}
	return nil
}

func (i *Identity) signed(leaf *x509.Certificate, now time.Time) bool {
	_, err := leaf.Verify(x509.VerifyOptions{Roots: i.pool(), DNSName: nodeDomain, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err == nil
}

func (i *Identity) renew(now time.Time) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of the node: %w", err)
	}
	raw, err := i.authority.issue(i.node, public, now)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return fmt.Errorf("read the certificate that was made: %w", err)
	}
	if i.dir != "" {
		content, err := encodePair(raw, key)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(i.dir, nodeFile), content, secret); err != nil {
			return fmt.Errorf("write the certificate of this node: %w", err)
		}
	}
	i.leaf = &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
	return nil
}

func (i *Identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.authority.cert)
	return pool
}

// Node is the identifier of the node.
func (i *Identity) Node() string { return i.node }

// Authority is the authority of the node's cluster.
func (i *Identity) Authority() *Authority {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.authority
}

// Expires is when the node's certificate ends, unless it is renewed before.
func (i *Identity) Expires() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leaf.Leaf.NotAfter
}

// present is the certificate to show, renewed if it is old. If that fails the old one has to do: the next try is at the
// next connection.
func (i *Identity) present() *tls.Certificate {
	i.mu.Lock()
	defer i.mu.Unlock()
	leaf := i.leaf
	if err := i.ensure(time.Now()); err != nil {
		return leaf
	}
	return i.leaf
}

// TLS is the configuration of connections between nodes, for both sides: TLS 1.3, and each side wants a certificate of
// this cluster's authority.
func (i *Identity) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		ClientAuth:           tls.RequireAndVerifyClientCert,
		RootCAs:              i.pool(),
		ClientCAs:            i.pool(),
		ServerName:           nodeDomain,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.present(), nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.present(), nil },
	}
}
