package subjects

import (
	"bytes"
	"strconv"
	"strings"
)

// TakesSheaves makes a token the last one of a reply subject whose caller takes sheaves.
func TakesSheaves(token string) string { return bundleMark + token }

// CutSheaf takes a reply subject apart: the subject of a sheaf for its inbox, and the request's own token. False: its caller does not take
// sheaves.
func CutSheaf(reply string) (sheaf, token string, ok bool) {
	i := strings.LastIndexByte(reply, '.') + 1
	if !strings.HasPrefix(reply[i:], bundleMark) || i == 0 || len(reply) == i+len(bundleMark) {
		return "", "", false
	}
	i += len(bundleMark)
	return reply[:i], reply[i:], true
}

// okCode stands in a sheaf where an answer is no refusal.
const okCode = 200

// AppendAnswer appends an answer to a sheaf. False: it has a line feed, so it has to go by itself, and nothing was appended.
func AppendAnswer(sheaf []byte, token string, body Body) ([]byte, bool) {
	before, code := len(sheaf), okCode
	if refusal, refused := body.(*Refusal); refused {
		code = refusal.Code
	}
	sheaf = append(append(sheaf, token...), ' ')
	sheaf = append(strconv.AppendInt(sheaf, int64(code), 10), ' ')
	start := len(sheaf)
	sheaf = body.AppendJSON(sheaf)
	if bytes.IndexByte(sheaf[start:], '\n') >= 0 {
		return sheaf[:before], false
	}
	return append(sheaf, '\n'), true
}

// Answer is one of a sheaf. Token and Body are part of the sheaf.
type Answer struct {
	Token   []byte
	Refused bool
	Body    []byte // JSON
}

// NextAnswer takes the first answer from a sheaf. False: there is none that can be read.
func NextAnswer(sheaf []byte) (a Answer, rest []byte, ok bool) {
	line, rest, ended := bytes.Cut(sheaf, newline)
	token, line, first := bytes.Cut(line, space)
	digits, body, second := bytes.Cut(line, space)
	if !ended || !first || !second || len(token) == 0 || len(digits) != 3 || digits[0] < '1' || digits[0] > '9' {
		return Answer{}, nil, false
	}
	return Answer{Token: token, Refused: digits[0] != '2', Body: body}, rest, true
}
