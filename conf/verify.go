package conf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"golang.org/x/sys/unix"
)

// Finding is the outcome of one check of Verify.
type Finding struct {
	What   string // what was looked at
	OK     bool
	Detail string // what was found
	Fix    string // what to do, if it is not OK
}

// dialTimeout is how long Verify waits for whoever listens on an address.
const dialTimeout = 2 * time.Second

// Verify looks at what a daemon with these valid settings would find on this machine: the data directory, the keys, the
// addresses; in a cluster at the certificates and every other node; and at files with credentials, whether they count. It
// changes nothing.
func Verify(ctx context.Context, s *Settings, creds []string) []Finding {
	findings := []Finding{checkData(s.Data)}
	auth, found := checkAuth(s)
	findings = append(findings, found...)
	for _, path := range creds {
		findings = append(findings, checkCreds(s, auth, path))
	}
	findings = append(findings, checkListen(ctx, "listen", s.Listen, savedNode(s.Data)))
	if s.HTTP != "off" {
		findings = append(findings, checkHTTP(ctx, s.HTTP))
	}
	return append(findings, checkCluster(ctx, s)...)
}

func checkData(dir string) Finding {
	f := Finding{What: "data " + dir}
	if dir == "" {
		return Finding{What: "data", OK: true, Detail: "no directory: locks and keys do not outlive the daemon"}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.OK, f.Detail = true, "does not exist yet, the daemon makes it"
	case err != nil:
		f.Detail, f.Fix = err.Error(), "let the daemon's user read it"
	case !info.IsDir():
		f.Detail, f.Fix = "is not a directory", "name another with --data"
	case info.Mode().Perm()&0o022 != 0:
		f.Detail, f.Fix = fmt.Sprintf("others can write to it (mode %04o)", info.Mode().Perm()), "chmod go-w "+dir
	case unix.Access(dir, unix.W_OK) != nil:
		f.Detail, f.Fix = "this user cannot write to it", "chown it to the daemon's user, or run this as that user"
	default:
		f.OK, f.Detail = true, "can be written to"
	}
	return f
}

// checkAuth reads the keys; auth is nil if there are none.
func checkAuth(s *Settings) (auth *Auth, findings []Finding) {
	if s.Data == "" {
		return nil, nil
	}
	auth, err := ReadAuth(s.Data)
	f := Finding{What: "keys " + (&Auth{dir: s.Data}).File()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.OK, f.Detail = true, "none yet, the daemon or `user add` makes them"
		return nil, []Finding{f}
	case err != nil:
		f.Detail, f.Fix = err.Error(), "see above"
		return nil, []Finding{f}
	}
	f.OK, f.Detail = true, fmt.Sprintf("can be read, zones with keys: %d", len(auth.Zones()))
	findings = append(findings, f)
	now := time.Now()
	for _, zone := range auth.Zones() {
		f := Finding{What: "zone " + zone}
		users, err := auth.Users(zone)
		if err != nil { // it is there, so it cannot be
			continue
		}
		valid := 0
		for _, u := range users {
			if u.Status(now) == "valid" {
				valid++
			}
		}
		f.OK, f.Detail = true, fmt.Sprintf("users with valid credentials: %d", valid)
		if !slices.ContainsFunc(s.Zones, func(z Zone) bool { return z.Name == zone }) {
			f.OK, f.Detail = false, "has keys, but is not configured, so its users cannot connect"
			f.Fix = "add it to zones, or run: oclocks-config zone remove " + zone
		}
		findings = append(findings, f)
	}
	return auth, findings
}

// checkCreds says whether a file of credentials lets somebody in.
func checkCreds(s *Settings, auth *Auth, path string) Finding {
	f := Finding{What: "credentials " + path, Fix: "make new ones with oclocks-config user add"}
	content, err := readBounded(path, 1<<20)
	if err != nil {
		f.Detail, f.Fix = err.Error(), "correct the path"
		return f
	}
	token, err := jwt.ParseDecoratedJWT(content)
	if err != nil {
		f.Detail = "no JWT in it: " + err.Error()
		return f
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		f.Detail = "the JWT is not valid: " + err.Error()
		return f
	}
	pair, err := jwt.ParseDecoratedUserNKey(content)
	if err != nil {
		f.Detail = "no key in it: " + err.Error()
		return f
	}
	if key, err := pair.PublicKey(); err != nil || key != claims.Subject {
		f.Detail = "the key is not that of the JWT"
		return f
	}
	if claims.Expires != 0 && time.Now().Unix() >= claims.Expires {
		f.Detail = "expired at " + time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339)
		return f
	}
	zone, user := auth.owner(claims)
	switch {
	case zone == "":
		f.Detail = "they are of another cluster, or of a zone that was removed"
	case !user.Revoked.IsZero():
		f.Detail = "revoked at " + user.Revoked.Format(time.RFC3339)
	case !slices.ContainsFunc(s.Zones, func(z Zone) bool { return z.Name == zone }):
		f.Detail, f.Fix = "zone "+zone+" is not configured", "add it with oclocks-config zone add "+zone
	default:
		f.OK, f.Fix, f.Detail = true, "", fmt.Sprintf("valid: %s in zone %s", claims.Name, zone)
	}
	return f
}

// owner finds the zone that made the claims, and the user if it is in the list. auth may be nil.
func (a *Auth) owner(claims *jwt.UserClaims) (zone string, user User) {
	if a == nil {
		return "", User{}
	}
	for name, keys := range a.current().Zones {
		account, err := publicKey(keys.Account)
		if err != nil || account != claims.IssuerAccount {
			continue
		}
		for _, seed := range keys.Roles {
			if key, err := publicKey(seed); err == nil && key == claims.Issuer {
				zone = name
			}
		}
		if i := slices.IndexFunc(keys.Users, func(u User) bool { return u.Key == claims.Subject }); i >= 0 {
			user = keys.Users[i]
		}
	}
	return zone, user
}

// savedNode is who the node of a data directory is; "" if that is not known.
func savedNode(data string) string {
	if data == "" {
		return ""
	}
	id, err := os.ReadFile(filepath.Join(data, "node-id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// checkListen says whether the clients' address is free, or who is there. node is this one, "" if that is not known.
func checkListen(ctx context.Context, key, addr, node string) Finding {
	f, used := checkFree(ctx, key, addr)
	if !used {
		return f
	}
	switch server, err := natsServer(ctx, addr); {
	case err != nil:
	case node != "" && server == node:
		f.OK, f.Fix, f.Detail = true, "", "in use by this node's daemon"
	case node != "":
		f.Detail = "in use by another NATS server, " + server
	default:
		f.OK, f.Fix, f.Detail = true, "", "in use by the NATS server "+server+", which is right if that is the daemon"
	}
	return f
}

// checkHTTP says whether the address for health and metrics is free.
func checkHTTP(ctx context.Context, addr string) Finding {
	f, used := checkFree(ctx, "http", addr)
	if used {
		f.OK, f.Fix, f.Detail = true, "", "in use, which is right if the daemon is running"
	}
	return f
}

// checkFree says whether an address is free; used says that it could be listened on, if nobody else did.
func checkFree(ctx context.Context, key, addr string) (f Finding, used bool) {
	f = Finding{What: key + " " + addr}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		f.OK, f.Detail = true, "free"
		if err := l.Close(); err != nil {
			f.OK, f.Detail = false, err.Error()
		}
		return f, false
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		f.Detail, f.Fix = err.Error(), "choose an address of this machine with --"+key
		return f, false
	}
	f.Detail, f.Fix = "in use", "stop what listens there, or choose another address with --"+key
	return f, true
}

// natsServer reads the name of the NATS server that listens on an address.
func natsServer(ctx context.Context, addr string) (name string, err error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return "", err
	}
	line, err := readGreeting(conn)
	if err != nil {
		return "", err
	}
	var info struct {
		Name string `json:"server_name"`
	}
	if err := json.Unmarshal(line, &info); err != nil {
		return "", err
	}
	return info.Name, nil
}
