package broker

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/opencluster/oclocks/subjects"
)

// The broker is a NATS micro service, so that `nats service ls|info|stats` find it. The framework of nats.go is not used
// for it, because that answers to any reply subject: here the subject must be an inbox, as for every other request.

const (
	serviceName        = "oclocks"
	serviceDescription = "distributed locks; see locks.info"
)

// serviceStats counts a zone's requests on this node by operation; a zone sees its own only.
type serviceStats struct {
	started time.Time
	ops     [len(servedOps)]struct{ requests, errors atomic.Uint64 }
}

var servedOps = [...]subjects.Op{
	subjects.OpNone, // what could not be understood
	subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpCancel, subjects.OpQuery, subjects.OpList,
	subjects.OpForce, subjects.OpCheck, subjects.OpReclaim, subjects.OpSessionOpen, subjects.OpSessionClose,
	subjects.OpKeep, subjects.OpInfo, subjects.OpServers, subjects.OpPing,
}

func (s *serviceStats) requested(op subjects.Op) {
	if int(op) < len(s.ops) {
		s.ops[op].requests.Add(1)
	}
}

func (s *serviceStats) refused(op subjects.Op) {
	if int(op) < len(s.ops) {
		s.ops[op].errors.Add(1)
	}
}

func serviceSubjects(node string) []string {
	return []string{"$SRV.*", "$SRV.*." + serviceName, "$SRV.*." + serviceName + "." + node}
}

// service answers one of the micro service's questions.
func (z *zone) service(msg *nats.Msg, scratch []byte) []byte {
	if !subjects.ValidReply(msg.Reply, "", true) {
		z.d.metrics.ignored.Inc()
		return scratch
	}
	verb, _, _ := strings.Cut(strings.TrimPrefix(msg.Subject, "$SRV."), ".")
	identity := micro.ServiceIdentity{Name: serviceName, ID: z.d.node, Version: semver(z.d.version)}
	var answer any
	switch verb {
	case "PING":
		answer = micro.Ping{ServiceIdentity: identity, Type: micro.PingResponseType}
	case "INFO":
		answer = micro.Info{ServiceIdentity: identity, Type: micro.InfoResponseType,
			Description: serviceDescription, Endpoints: z.endpoints()}
	case "STATS":
		answer = micro.Stats{ServiceIdentity: identity, Type: micro.StatsResponseType,
			Started: z.stats.started, Endpoints: z.endpointStats()}
	default:
		return scratch
	}
	body, err := json.Marshal(answer)
	if err != nil {
		z.d.log.Error("answer as a micro service", "verb", verb, "error", err)
		return scratch
	}
	z.publish(msg.Reply, body)
	return scratch
}

func (z *zone) endpoints() []micro.EndpointInfo {
	var list []micro.EndpointInfo
	for _, op := range servedOps[1:] {
		list = append(list, micro.EndpointInfo{Name: op.String(), Subject: "locks." + op.String(), QueueGroup: queueGroup})
	}
	return list
}

func (z *zone) endpointStats() []*micro.EndpointStats {
	var list []*micro.EndpointStats
	for _, op := range servedOps[1:] {
		n := &z.stats.ops[op]
		list = append(list, &micro.EndpointStats{Name: op.String(), Subject: "locks." + op.String(),
			QueueGroup: queueGroup, NumRequests: int(n.requests.Load()), NumErrors: int(n.errors.Load())})
	}
	return list
}

// semver is the version in the form that micro services must have.
func semver(version string) string {
	version = strings.TrimPrefix(version, "v")
	if strings.Count(version, ".") != 2 {
		return "0.0.0"
	}
	return version
}
