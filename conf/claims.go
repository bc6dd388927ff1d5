package conf

import (
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/subjects"
)

const (
	// InternalConnections is how many connections of the broker itself a zone's account has room for, besides the
	// quota of its clients: nats-server counts both.
	InternalConnections = 64

	// maxSubscriptions bounds the subscriptions of one client's connection.
	maxSubscriptions = 10_000

	// subjectToken stands in a role's permissions for the user's own token; nats-server fills in its public nkey.
	subjectToken = "{{subject()}}"

	// userInfo is where a client may ask the NATS server who it is.
	userInfo = "$SYS.REQ.USER.INFO"
)

// Operator is the claim that the NATS server trusts.
func (a *Auth) Operator() (*jwt.OperatorClaims, error) {
	s := a.current()
	operator, err := publicKey(s.Operator)
	if err != nil {
		return nil, err
	}
	claims := jwt.NewOperatorClaims(operator)
	claims.Name = "oclocks"
	if claims.SystemAccount, err = publicKey(s.System); err != nil {
		return nil, err
	}
	token, err := sign(claims, s.Operator)
	if err != nil {
		return nil, err
	}
	return jwt.DecodeOperatorClaims(token)
}

// SystemAccount is the id and JWT of the system account.
func (a *Auth) SystemAccount() (id, token string, err error) {
	s := a.current()
	return internalAccount(s.Operator, s.System, systemName)
}

// NodesAccount is the id and JWT of the account in which the nodes talk to each other.
func (a *Auth) NodesAccount() (id, token string, err error) {
	s := a.current()
	return internalAccount(s.Operator, s.Nodes, nodesName)
}

func internalAccount(operator, account, name string) (id, token string, err error) {
	if id, err = publicKey(account); err != nil {
		return "", "", err
	}
	claims := jwt.NewAccountClaims(id)
	claims.Name = name
	claims.Limits.LeafNodeConn = 0
	claims.Limits.DisallowBearer = true
	token, err = sign(claims, operator)
	return id, token, err
}

// AccountID is the public key of a zone's account. ErrNotFound if the zone has no keys.
func (a *Auth) AccountID(zone string) (string, error) {
	keys, err := a.current().zone(zone)
	if err != nil {
		return "", err
	}
	return publicKey(keys.Account)
}

// AccountJWT is the JWT of a zone's account: its limits, what each role may do, and whose credentials are revoked.
// ErrNotFound if the zone has no keys.
func (a *Auth) AccountJWT(zone Zone) (string, error) {
	s := a.current()
	keys, err := s.zone(zone.Name)
	if err != nil {
		return "", err
	}
	id, err := publicKey(keys.Account)
	if err != nil {
		return "", err
	}
	claims := jwt.NewAccountClaims(id)
	claims.Name = zone.Name
	claims.Limits.Conn = int64(zone.Quota.WithDefaults().Connections + InternalConnections)
	claims.Limits.LeafNodeConn = 0
	claims.Limits.DisallowBearer = !zone.Open
	for _, role := range Roles() {
		if err := addScope(claims, keys.Roles[role], string(role), zone.permissions(role, subjectToken)); err != nil {
			return "", err
		}
	}
	if zone.Open {
		template := zone.permissions(zone.OpenRole(), subjects.Anyone)
		template.BearerToken = true
		if err := addScope(claims, keys.Open, "open", template); err != nil {
			return "", err
		}
	}
	now := time.Now()
	for _, u := range keys.Users {
		if !u.Revoked.IsZero() && !u.expired(now) {
			claims.RevokeAt(u.Key, u.Revoked)
		}
	}
	return sign(claims, s.Operator)
}

func addScope(claims *jwt.AccountClaims, seed, role string, template jwt.UserPermissionLimits) error {
	key, err := publicKey(seed)
	if err != nil {
		return err
	}
	scope := jwt.NewUserScope()
	scope.Key, scope.Role, scope.Template = key, role, template
	claims.SigningKeys.AddScopedSigner(scope)
	return nil
}

// permissions are what NATS lets a user of the role do, with token for the user's own token. Nothing else is allowed,
// and nothing by way of an answer (allow_responses).
func (z Zone) permissions(role Role, token string) jwt.UserPermissionLimits {
	var p jwt.UserPermissionLimits
	p.NatsLimits = jwt.NatsLimits{Subs: maxSubscriptions, Data: jwt.NoLimit, Payload: jwt.NoLimit}
	for _, op := range role.Ops() {
		name := op.String()
		p.Pub.Allow.Add("locks." + name + "." + token)
		switch {
		case op == subjects.OpKeep:
			p.Pub.Allow.Add("locks.keep.*." + token)
			continue // an unnamed caller has no session to keep
		case op.OnName() || op == subjects.OpSessionClose:
			p.Pub.Allow.Add("locks.b.*." + name + "." + token)
		}
		if z.TakesUnnamed() && op != subjects.OpForce {
			p.Pub.Allow.Add("locks." + name)
		}
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		p.Pub.Allow.Add("$SRV."+verb, "$SRV."+verb+".oclocks", "$SRV."+verb+".oclocks.*")
	}
	p.Pub.Allow.Add(userInfo)

	inbox := "_INBOX." + token + ".>"
	if z.SharedInboxes || token == subjects.Anyone {
		inbox = "_INBOX.>"
	}
	if z.TakesUnnamed() && inbox != "_INBOX.>" {
		p.Sub.Allow.Add("_INBOX." + subjects.Anyone + ".>") // where unnamed requests are answered
	}
	p.Sub.Allow.Add(inbox, "locks.event.server.>", "locks.event.cluster.>", "locks.event.lock.>",
		"locks.event.session."+token+".>")
	return p
}

// Tombstone is the last JWT of an account: it revokes everybody and allows no connection, so that each NATS server that
// gets it drops the account's clients.
func (a *Auth) Tombstone(accountID string) (string, error) {
	claims := jwt.NewAccountClaims(accountID)
	claims.Name = "removed"
	claims.Limits = jwt.OperatorLimits{}
	claims.Limits.DisallowBearer = true
	claims.RevokeAt(jwt.All, time.Now())
	return sign(claims, a.current().Operator)
}

// Sentinel is the JWT that the NATS server takes for that of a connection without one: the user subjects.Anyone of the zone. It
// proves nothing and needs no key. It counts while the zone's account says that the zone is open.
func (a *Auth) Sentinel(zone string) (string, error) {
	keys, err := a.current().zone(zone)
	if err != nil {
		return "", err
	}
	seed, err := newSeed(nkeys.PrefixByteUser)
	if err != nil {
		return "", err
	}
	key, err := publicKey(seed)
	if err != nil {
		return "", err
	}
	claims, err := keys.scopedUser(key, subjects.Anyone)
	if err != nil {
		return "", err
	}
	return sign(claims, keys.Open)
}

// Credentials are a user's JWT and the key that proves it, of a connection of the broker itself.
type Credentials struct {
	JWT  string
	Pair nkeys.KeyPair
}

// SystemUser makes credentials with all permissions in the system account.
func (a *Auth) SystemUser() (Credentials, error) { return internalUser(a.current().System) }

// NodesUser makes credentials with all permissions in the account of the nodes.
func (a *Auth) NodesUser() (Credentials, error) { return internalUser(a.current().Nodes) }

// ZoneUser makes credentials with all permissions in a zone. ErrNotFound if the zone has no keys.
func (a *Auth) ZoneUser(zone string) (Credentials, error) {
	keys, err := a.current().zone(zone)
	if err != nil {
		return Credentials{}, err
	}
	return internalUser(keys.Account)
}

// internalUser is signed by the account's own key, which has no scope and so no limits.
func internalUser(account string) (Credentials, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, fmt.Errorf("make a key: %w", err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		return Credentials{}, err
	}
	claims := jwt.NewUserClaims(key)
	claims.Name = "oclocks"
	token, err := sign(claims, account)
	return Credentials{JWT: token, Pair: pair}, err
}

func publicKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("use a key: %w", err)
	}
	return pair.PublicKey()
}

func sign(claims jwt.Claims, seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("use a key: %w", err)
	}
	token, err := claims.Encode(pair)
	if err != nil {
		return "", fmt.Errorf("sign a JWT: %w", err)
	}
	return token, nil
}
