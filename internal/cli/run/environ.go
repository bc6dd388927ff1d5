package run

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The variables that a command finds in its environment. NAME64 (base64) is there when the name is not UTF-8 or has a NUL
// byte; with a NUL byte NAME itself is missing, because no variable can hold one.
const (
	EnvName   = "OCLOCKS_NAME"
	EnvName64 = "OCLOCKS_NAME64"
	EnvToken  = "OCLOCKS_TOKEN"
	EnvKey    = "OCLOCKS_KEY"
)

// Environ is base with the lock's variables in place of what base had of them. The token is decimal, the key 16 hex
// digits, as on the wire.
func Environ(base []string, name string, token, key uint64) []string {
	env := make([]string, 0, len(base)+4)
	for _, kv := range base {
		switch v, _, _ := strings.Cut(kv, "="); v {
		case EnvName, EnvName64, EnvToken, EnvKey:
		default:
			env = append(env, kv)
		}
	}
	nul := strings.IndexByte(name, 0) >= 0
	if !nul {
		env = append(env, EnvName+"="+name)
	}
	if nul || !utf8.ValidString(name) {
		env = append(env, EnvName64+"="+base64.StdEncoding.EncodeToString([]byte(name)))
	}
	return append(env,
		EnvToken+"="+strconv.FormatUint(token, 10),
		EnvKey+"="+fmt.Sprintf("%016x", key))
}
