package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// identify finds the caller's own token, the last of every subject: the subject of the user JWT; else that of the inbox
// prefix; else what the NATS server says that the user may publish on; else it is an open zone's.
func identify(ctx context.Context, nc *nats.Conn, o *nats.Options) (string, error) {
	user, err := jwtUser(o)
	if err != nil || user != "" {
		return user, err
	}
	if user := prefixUser(o.InboxPrefix); user != "" {
		return user, nil
	}
	return permittedUser(ctx, nc), nil
}

// jwtUser is the subject of the user JWT, "" if the options have none.
func jwtUser(o *nats.Options) (string, error) {
	if o.UserJWT == nil {
		return "", nil
	}
	text, err := o.UserJWT()
	if err != nil {
		return "", fmt.Errorf("read the user JWT: %w", err)
	}
	claims, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return "", fmt.Errorf("read the user JWT: %w", err)
	}
	return claims.Subject, nil
}

// prefixUser is the <user> of an inbox prefix _INBOX.<user>, "" for any other.
func prefixUser(prefix string) string {
	user, ok := strings.CutPrefix(strings.TrimSuffix(prefix, "."), "_INBOX.")
	if !ok || !subjects.ValidToken(user) {
		return ""
	}
	return user
}

// userInfoTimeout bounds the question who we are. A server that does not answer it has an open zone.
const userInfoTimeout = time.Second

// permittedUser asks the NATS server for the user's permissions: who may publish on locks.query.<user> is <user>.
func permittedUser(ctx context.Context, nc *nats.Conn) string {
	ctx, cancel := context.WithTimeout(ctx, userInfoTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return subjects.Anyone
	}
	var answer struct {
		Data struct {
			Permissions struct {
				Publish struct {
					Allow []string `json:"allow"`
				} `json:"publish"`
			} `json:"permissions"`
		} `json:"data"`
	}
	if json.Unmarshal(msg.Data, &answer) != nil {
		return subjects.Anyone
	}
	for _, allowed := range answer.Data.Permissions.Publish.Allow {
		user, ok := strings.CutPrefix(allowed, subjects.SimpleSubject(subjects.OpQuery, ""))
		if ok && subjects.ValidToken(user) {
			return user
		}
	}
	return subjects.Anyone
}

// inboxPrefix is what the reply subjects of a user must begin with.
func inboxPrefix(user string) string {
	if user == subjects.Anyone {
		return "_INBOX"
	}
	return "_INBOX." + user
}
