package machine

import "time"

const (
	// VacantLimit is how long a bucket may have no primary, as the server sees it: longer than a fail-over takes. A server
	// may be cut off from a primary that others reach, and what goes from server to server goes one hop only.
	VacantLimit = 2 * time.Second

	// roamLimit bounds the rest after a change of the server that did not help.
	roamLimit = 30 * time.Second
)

// Roam decides when a client leaves its server for another one though the connection is as good as ever: when the server says
// that it is cut off, or does not reach the primary of a bucket for longer than a fail-over takes. Where that is no better the
// client goes on, more and more slowly.
type Roam struct {
	rest  time.Duration
	tried int64 // when a server was left; 0: never
}

// Look says whether to leave the server, which is one of so many. cutOff: the server itself says that it is; vacant is
// [Machine.Vacant]. again is after how long to ask the server again whether it is cut off, 0: not for this. random is as for
// [Road.Next].
func (r *Roam) Look(now int64, cutOff bool, vacant int64, servers int, random func(n int64) int64) (leave bool, again time.Duration) {
	since := time.Duration(now - r.tried)
	rested := r.tried == 0 || since >= r.rest
	switch {
	case !cutOff && vacant <= int64(VacantLimit):
		if r.tried == 0 || since > roamLimit {
			r.rest = 0
		}
		return false, 0
	case servers < 2, !rested:
		if cutOff {
			return false, r.rest
		}
		return false, 0
	}
	r.tried, r.rest = now, min(max(2*r.rest, VacantLimit/2), roamLimit)+time.Duration(random(int64(VacantLimit/4)))
	return true, 0
}
