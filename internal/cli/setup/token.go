package setup

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// Invitation is a join token and where it leads.
type Invitation struct {
	Token   string    `json:"token"` // a secret
	Expires time.Time `json:"expires"`
	URLs    []string  `json:"urls"` // where the new node asks
}

// Invite makes a join token from the keys in a data directory. urls are where the new node may ask; see ClientURLs.
func Invite(data string, urls []string, life time.Duration) (*Invitation, error) {
	auth, err := conf.ReadAuth(data)
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("%w: name the clients' address of a node with --at, for example nats://10.1.2.3:4222", ErrNoAddress)
	}
	text, err := conf.NewJoinToken(auth, urls, life)
	if err != nil {
		return nil, err
	}
	token, err := conf.ParseJoinToken(text)
	if err != nil {
		return nil, err
	}
	return &Invitation{Token: text, Expires: token.Expires().UTC(), URLs: urls}, nil
}

// Local says whether only this machine reaches the addresses of the invitation.
func (i *Invitation) Local() bool {
	return !slices.ContainsFunc(i.URLs, func(text string) bool {
		u, err := url.Parse(text)
		if err != nil { // such a token cannot be made
			return true
		}
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}

// maxURLs is how many addresses a token gets: it is to be copied by hand.
const maxURLs = 8

// ClientURLs are where clients reach the nodes. One that listens on all of its addresses is taken at the one at which the
// other nodes reach it.
func ClientURLs(nodes []shared.Node) []string {
	var urls []string
	for i := range nodes {
		n := &nodes[i]
		if n.Arbiter {
			continue
		}
		for _, c := range n.Clients {
			host, port, err := net.SplitHostPort(c)
			if err != nil {
				continue
			}
			if unspecified(host) && len(n.Routes) > 0 {
				if host, _, err = net.SplitHostPort(n.Routes[0]); err != nil {
					continue
				}
			}
			url := "nats://" + net.JoinHostPort(host, port)
			if !unspecified(host) && !slices.Contains(urls, url) && len(urls) < maxURLs {
				urls = append(urls, url)
			}
		}
	}
	return urls
}

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
