package conf

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 365 * 24 * time.Hour
	// backdated is how far a certificate begins in the past, so that machines whose clocks differ accept it at once.
	backdated = 24 * time.Hour

	// nodeDomain is a name of every node's certificate: whoever connects asks for it, since the address of a node says
	// nothing of who it is. Below it each node has a name of its own.
	nodeDomain = "node.oclocks"
)

// Authority signs the certificates of a cluster's nodes: whom it signed is a node, and nobody else. Every node has its
// key, so that each can let others in and renew its own certificate: a node has the keys of all accounts anyway, so a
// stolen one is the whole cluster with or without it.
type Authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// NewAuthority makes the authority of a new cluster; it lasts ten years.
func NewAuthority(cluster string) (*Authority, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the cluster's certificate authority: %w", err)
	}
	return selfSigned(cluster, key, time.Now())
}

func selfSigned(cluster string, key ed25519.PrivateKey, now time.Time) (*Authority, error) {
	if err := checkName(cluster); err != nil {
		return nil, fmt.Errorf("name of the cluster: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"oclocks"}, CommonName: cluster},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		// It is good for the nodes of this cluster and for no other name in the world.
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{nodeDomain},
	}
	raw, err := certificate(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that was made: %w", err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// certificate gives the DER form. x509 draws the serial number.
func certificate(template, parent *x509.Certificate, public crypto.PublicKey, key ed25519.PrivateKey) ([]byte, error) {
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return raw, nil
}

// Cluster is the name of the cluster that the authority was made for.
func (a *Authority) Cluster() string { return a.cert.Subject.CommonName }

// Certificate is the authority's own certificate. The caller must not change it.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Issue signs a certificate for the node with that identifier and that public key, an ed25519.PublicKey. It lasts a
// year, or as long as the authority. The result is in DER form.
func (a *Authority) Issue(node string, public crypto.PublicKey) ([]byte, error) {
	return a.issue(node, public, time.Now())
}

func (a *Authority) issue(node string, public crypto.PublicKey, now time.Time) ([]byte, error) {
	if err := CheckNodeID(node); err != nil {
		return nil, err
	}
	if _, ok := public.(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("certificate of node %s: a key of type %T, expected Ed25519", node, public)
	}
	end := now.Add(nodeLife)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	return certificate(&x509.Certificate{
		Subject:     pkix.Name{Organization: []string{"oclocks"}, CommonName: node},
		NotBefore:   now.Add(-backdated),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{nodeDomain, node + "." + nodeDomain},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}, a.cert, public, a.key)
}

// Encode is the content of ca.pem: certificate and key. It is a secret.
func (a *Authority) Encode() ([]byte, error) { return encodePair(a.cert.Raw, a.key) }

// ParseAuthority reads what Encode made.
func ParseAuthority(content []byte) (*Authority, error) {
	cert, key, err := decodePair(content)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA || cert.CheckSignatureFrom(cert) != nil {
		return nil, errors.New("the certificate is not one of a certificate authority")
	}
	return &Authority{cert: cert, key: key}, nil
}

func encodePair(cert []byte, key ed25519.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})...), nil
}

// decodePair reads a certificate and the Ed25519 key that belongs to it. Errors say nothing of the key itself.
func decodePair(content []byte) (*x509.Certificate, ed25519.PrivateKey, error) {
	var cert *x509.Certificate
	var key ed25519.PrivateKey
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
			parsed, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, nil, fmt.Errorf("the certificate: %w", err)
			}
			cert = parsed
		case "PRIVATE KEY":
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, nil, errors.New("the key is not valid")
			}
			key, _ = parsed.(ed25519.PrivateKey)
		}
	}
	if cert == nil || key == nil {
		return nil, nil, errors.New("the certificate or its Ed25519 key is missing")
	}
	if public, ok := cert.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, nil, errors.New("the key is not that of the certificate")
	}
	return cert, key, nil
}
