package conf

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// AdminUser makes credentials with which a tool asks the nodes to administer the cluster: a user of the account of the
// nodes that may publish to admin.<operation>.<its own key> and receive below its own inbox, and nothing else. They count
// for ttl, in whole seconds. name is what connections are called.
func (a *Auth) AdminUser(name string, ttl time.Duration) (creds Credentials, key string, err error) {
	if ttl < time.Second {
		return Credentials{}, "", fmt.Errorf("credentials of a tool for %s: expected at least 1s", ttl)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, "", fmt.Errorf("make a key: %w", err)
	}
	if key, err = pair.PublicKey(); err != nil {
		return Credentials{}, "", err
	}
	claims := jwt.NewUserClaims(key)
	claims.Name = name
	claims.Expires = time.Now().Add(ttl).Unix()
	claims.Pub.Allow.Add("admin.*." + key)
	claims.Sub.Allow.Add(InboxPrefix(key) + ".>")
	token, err := sign(claims, a.current().Nodes)
	return Credentials{JWT: token, Pair: pair}, key, err
}
