package control

import (
	"strconv"
	"strings"
)

// Subjects in the account of the nodes that this package uses.
const (
	subjectRegister = "leader.register"
	subjectReport   = "leader.report"
	subjectChange   = "leader.change"
	subjectLeaving  = "leader.leaving"
	subjectStatus   = "status" // every node answers
	subjectStarts   = "starts" // every node answers
	subjectAway     = "away"
	subjectAlerts   = "alert.*"
)

func subjectRaft(raft uint64) string    { return "raft." + strconv.FormatUint(raft, 10) }
func subjectOrder(number uint64) string { return "node." + strconv.FormatUint(number, 10) + ".order" }
func subjectHello(number uint64) string { return "node." + strconv.FormatUint(number, 10) + ".hello" }
func subjectAlert(number uint64) string { return "alert." + strconv.FormatUint(number, 10) }

// subjectHere is where the node with this identifier says that it is there, registered or not.
func subjectHere(identifier string) string { return "here." + identifier }

// lastToken is the number that a subject ends with, 0 if it does not.
func lastToken(subject string) uint64 {
	n, err := strconv.ParseUint(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
