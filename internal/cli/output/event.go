package output

import (
	"fmt"
	"strings"

	"github.com/opencluster/oclocks/subjects"
)

// event prints one line: the time, what happened, to what, and details that are not empty.
func (p *Printer) event(what, subject string, details ...string) {
	line := p.Now().Format("15:04:05.000") + "  " + fmt.Sprintf("%-16s", what) + "  " + subject
	for i := 0; i < len(details); i += 2 {
		if details[i+1] != "" {
			line += "  " + details[i] + " " + details[i+1]
		}
	}
	p.printf("%s\n", strings.TrimRight(line, " "))
}

func (p *Printer) lockEvent(e *subjects.LockEvent) {
	held := ""
	if e.Held > 0 {
		held = Span(e.Held)
	}
	p.event("lock "+Text(e.Type), Text(e.Name), "token", number(e.Token), "holder", some(e.Holder), "user", some(e.User),
		"held", held, "outcome", some(e.Outcome))
}

func (p *Printer) serverEvent(e *subjects.ServerEvent) {
	urls := ""
	if len(e.URLs) > 0 {
		urls = texts(e.URLs)
	}
	p.event(strings.Replace(Text(e.Type), ".", " ", 1), some(e.Node), "name", some(e.Name), "urls", urls,
		"status", some(e.Status), "mode", some(e.Mode))
}

func (p *Printer) sessionEvent(e *subjects.SessionEvent) {
	refused := ""
	if e.Refusal != nil {
		refused = Text(e.Refusal.Error())
	}
	key := ""
	if e.Grant != nil {
		key = Key(e.Grant.Key)
	}
	p.event("session "+Text(e.Type), some(e.Name), "token", number(e.Token), "ticket", number(e.Ticket),
		"place", number(uint64(e.Place)), "request", some(e.Request), "why", some(e.Why), "queue", number(uint64(max(e.Queue, 0))),
		"key", key, "refused", refused)
}

// some is Text, but nothing for nothing.
func some(s string) string {
	if s == "" {
		return ""
	}
	return Text(s)
}

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
