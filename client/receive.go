package client

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// receive takes what came to a reply subject of ours, over whatever connection.
func (c *Client) receive(msg *nats.Msg) {
	_, token := cutToken(msg.Subject)
	token, marked := cutMark(token)
	switch {
	case marked && token == "":
		c.receiveSheaf(msg.Data)
	case token == "":
	case token[0] == 'k':
		c.receiveKept(msg, token)
	case token[0] == 'q':
		if refusalOf(msg) == nil {
			c.takes(token, msg.Data)
		}
	default:
		c.receiveAnswer(msg, token)
	}
}

// receiveAnswer takes the answer to one call, or to a bundle, which is a refusal of all of it or NATS's word that nobody listens.
func (c *Client) receiveAnswer(msg *nats.Msg, token string) {
	refusal, unheard := refusalOf(msg), nobodyListens(msg)
	id, single := callID(token)
	c.do(func(now int64) {
		switch {
		case !single:
			c.apart(now, msg.Subject, token)
		case unheard:
			clear(c.roads.near)
			c.m.Unreachable(now, id)
		default:
			c.reply(now, id, msg.Data, refusal)
		}
	})
}

// receiveSheaf takes answers to several calls, in one step.
func (c *Client) receiveSheaf(sheaf []byte) {
	c.do(func(now int64) {
		eachAnswer(sheaf, func(token, body []byte, refusal *subjects.Refusal) {
			if id, ok := callID(string(token)); ok {
				c.reply(now, id, body, refusal)
			}
		})
	})
}

// eachAnswer gives the answers of a sheaf: their tokens, and a body or the refusal that it is.
func eachAnswer(sheaf []byte, take func(token, body []byte, refusal *subjects.Refusal)) {
	for {
		answer, rest, ok := subjects.NextAnswer(sheaf)
		if !ok {
			return
		}
		sheaf = rest
		var refusal *subjects.Refusal
		if answer.Refused {
			if refusal, ok = subjects.DecodeRefusal(answer.Body); !ok {
				continue
			}
		}
		take(answer.Token, answer.Body, refusal)
	}
}

// reply takes the answer to one call. The caller holds mu.
func (c *Client) reply(now int64, id uint64, data []byte, refusal *subjects.Refusal) {
	if refusal != nil && refusal.Code == 421 {
		clear(c.roads.near)
	}
	c.m.Reply(now, id, data, refusal)
}

// receiveKept takes the answer to a keep-alive.
func (c *Client) receiveKept(msg *nats.Msg, token string) {
	beat, ok := beatOf(token)
	if !ok {
		return
	}
	refusal := refusalOf(msg)
	var kept subjects.Kept
	if refusal == nil {
		if err := kept.DecodeJSON(msg.Data); err != nil {
			c.opts.log.Warn("read the answer to a keep-alive", "error", err)
			return
		}
	}
	c.do(func(now int64) {
		if refusal != nil {
			c.m.KeepRefused(now, beat, refusal)
			return
		}
		c.m.Kept(now, &kept)
	})
}

// cutMark takes the mark of who takes sheaves from a token.
func cutMark(token string) (rest string, marked bool) {
	return strings.CutPrefix(token, subjects.TakesSheaves(""))
}

// beatOf reads the reply token of a keep-alive.
func beatOf(token string) (beat uint64, ok bool) {
	if len(token) < 2 || token[0] != 'k' {
		return 0, false
	}
	beat, err := strconv.ParseUint(token[1:], 36, 64)
	return beat, err == nil
}

// nobodyListens says whether a message is the NATS server's word that a request found no subscriber.
func nobodyListens(msg *nats.Msg) bool {
	return len(msg.Data) == 0 && len(msg.Header) > 0 && msg.Header.Get("Status") == "503"
}

// refusalOf gives the refusal that a message is, nil if it is an answer.
func refusalOf(msg *nats.Msg) *subjects.Refusal {
	if len(msg.Header) == 0 {
		return nil
	}
	if nobodyListens(msg) {
		return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "no broker listens here"}
	}
	code := msg.Header.Get(subjects.HeaderErrorCode)
	if code == "" {
		return nil
	}
	if r, ok := subjects.DecodeRefusal(msg.Data); ok {
		return r
	}
	n, err := strconv.Atoi(code)
	if err != nil {
		n = 400
	}
	return &subjects.Refusal{Code: n, Reason: subjects.ReasonBadRequest, Message: msg.Header.Get(subjects.HeaderError)}
}
