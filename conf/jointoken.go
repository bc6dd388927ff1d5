package conf

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

const (
	// EnrollSubject is where, in the account of the nodes, a new node asks to be let in. A join token's user may publish
	// there and nowhere else.
	EnrollSubject = "enroll"

	// MinTokenLife is the shortest time that a join token counts.
	MinTokenLife = time.Minute
	// MaxTokenLife is the longest.
	MaxTokenLife = 7 * 24 * time.Hour

	tokenPrefix = "oclocks-join-1."
	tokenTag    = "join"
	maxTokenURL = 32
	// tokenSubs is how many subscriptions, and tokenPayload how many bytes in a message, a join token's user may have.
	tokenSubs    = 4
	tokenPayload = 16 << 10
)

// JoinToken lets one new node into the cluster. It is a secret until it was used or has expired.
type JoinToken struct {
	URLs []string `json:"urls"` // for clients, such as nats://10.1.2.3:4222
	Key  string   `json:"key"`  // the cluster's public curve key
	JWT  string   `json:"jwt"`  // of a user in the account of the nodes
	Seed string   `json:"seed"` // that proves it

	claims *jwt.UserClaims
	pair   nkeys.KeyPair
}

// NewJoinToken makes a join token, as text. URLs are those of the clients' addresses of some daemons; life is from
// MinTokenLife to MaxTokenLife. Nobody has to be told of it: what it is worth is in its signature.
func NewJoinToken(auth *Auth, urls []string, life time.Duration) (text string, err error) {
	if life < MinTokenLife || life > MaxTokenLife {
		return "", fmt.Errorf("a join token for %s: expected %s to %s", life, MinTokenLife, MaxTokenLife)
	}
	if err := checkTokenURLs(urls); err != nil {
		return "", err
	}
	t := JoinToken{URLs: urls}
	if t.Key, err = auth.CurveKey(); err != nil {
		return "", err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	t.Seed = string(seed)
	id, err := pair.PublicKey()
	if err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(id)
	claims.Name = "oclocks join token"
	claims.Expires = time.Now().Add(life).Unix()
	claims.Tags.Add(tokenTag)
	claims.Pub.Allow.Add(EnrollSubject)
	claims.Sub.Allow.Add(InboxPrefix(id) + ".>")
	claims.NatsLimits = jwt.NatsLimits{Subs: tokenSubs, Data: jwt.NoLimit, Payload: tokenPayload}
	if t.JWT, err = sign(claims, auth.current().Nodes); err != nil {
		return "", err
	}
	content, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode the join token: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(content), nil
}

// ParseJoinToken reads a join token. An expired one is no error: see Expires. Errors hold nothing of the token.
func ParseJoinToken(text string) (*JoinToken, error) {
	damaged := func(why string) error {
		return fmt.Errorf("%w (%s): copy all of it, in one line that begins with %s", ErrToken, why, tokenPrefix)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, damaged("it is empty")
	}
	encoded, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > maxTokenBytes {
		return nil, damaged("it does not look like one")
	}
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, damaged("it is cut or changed")
	}
	t := &JoinToken{}
	if err := json.Unmarshal(content, t); err != nil {
		return nil, damaged("it is cut or changed")
	}
	if err := checkTokenURLs(t.URLs); err != nil {
		return nil, damaged(err.Error())
	}
	if !nkeys.IsValidPublicCurveKey(t.Key) {
		return nil, damaged("it has no key of a cluster")
	}
	if t.claims, err = jwt.DecodeUserClaims(t.JWT); err != nil {
		return nil, damaged("its JWT is not valid")
	}
	if t.pair, err = nkeys.FromSeed([]byte(t.Seed)); err != nil {
		return nil, damaged("its key is not valid")
	}
	if key, err := t.pair.PublicKey(); err != nil || key != t.claims.Subject {
		return nil, damaged("its key is not that of its JWT")
	}
	return t, nil
}

func checkTokenURLs(urls []string) error {
	if len(urls) == 0 || len(urls) > maxTokenURL {
		return fmt.Errorf("%d addresses of daemons: expected 1 to %d", len(urls), maxTokenURL)
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || !slices.Contains([]string{"nats", "tls"}, u.Scheme) || u.Hostname() == "" || u.User != nil {
			return fmt.Errorf("%q is not the address of a daemon: expected for example nats://10.1.2.3:4222", shorten(text))
		}
		if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
			return fmt.Errorf("%q names no host: say where the new node reaches this daemon, for example nats://10.1.2.3:4222", text)
		}
	}
	return nil
}

// ID tells tokens apart. It is no secret.
func (t *JoinToken) ID() string { return t.claims.Subject }

// Expires is when the token ends.
func (t *JoinToken) Expires() time.Time { return time.Unix(t.claims.Expires, 0) }

// Credentials are those of the token's user.
func (t *JoinToken) Credentials() Credentials { return Credentials{JWT: t.JWT, Pair: t.pair} }

// CheckJoinToken says whether a JWT is that of a join token which this cluster made and which has not expired, and whether
// its owner signed the message. ErrToken if not, ErrExpired if it was one.
func (a *Auth) CheckJoinToken(token string, message, signature []byte, now time.Time) (id string, expires time.Time, err error) {
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%w: its JWT is not valid", ErrToken)
	}
	nodes, err := publicKey(a.current().Nodes)
	if err != nil {
		return "", time.Time{}, err
	}
	if claims.Issuer != nodes || !claims.Tags.Contains(tokenTag) || claims.Expires == 0 {
		return "", time.Time{}, fmt.Errorf("%w of this cluster", ErrToken)
	}
	pair, err := nkeys.FromPublicKey(claims.Subject)
	if err != nil || pair.Verify(message, signature) != nil {
		return "", time.Time{}, fmt.Errorf("%w: the request is not signed with its key", ErrToken)
	}
	expires = time.Unix(claims.Expires, 0)
	if !now.Before(expires) {
		return "", time.Time{}, expiredToken(expires)
	}
	return claims.Subject, expires, nil
}

func expiredToken(at time.Time) error {
	return fmt.Errorf("%w at %s", ErrExpired, at.UTC().Format(time.RFC3339))
}

// CheckExpiry is ErrExpired if the token's time is over by this machine's clock.
func (t *JoinToken) CheckExpiry(now time.Time) error {
	if !now.Before(t.Expires()) {
		return expiredToken(t.Expires())
	}
	return nil
}

// Membership is what a node needs to be one of the cluster: it is what a join token is for.
type Membership struct {
	Auth      []byte              `json:"auth"`      // content of auth.json
	Authority []byte              `json:"authority"` // content of ca.pem
	Routes    map[string][]string `json:"routes"`    // addresses of the other nodes, by identifier
}

// Membership is that of this cluster.
func (a *Auth) Membership(authority *Authority, routes map[string][]string) (Membership, error) {
	if _, err := a.curve(); err != nil {
		return Membership{}, err
	}
	m := Membership{Routes: routes}
	var err error
	if m.Auth, err = encodeAuth(a.current()); err != nil {
		return Membership{}, err
	}
	m.Authority, err = authority.Encode()
	return m, err
}
