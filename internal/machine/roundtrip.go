package machine

import "time"

// roundTrip knows how long answers take, as TCP does (RFC 6298): their mean and their mean deviation.
type roundTrip struct {
	mean, deviation int64
	known           bool
}

// minPatience is the shortest silence that counts as one.
const minPatience = int64(200 * time.Millisecond)

// sample takes the time that an answer took; only those to requests that were sent once.
func (r *roundTrip) sample(d int64) {
	if !r.known {
		r.mean, r.deviation, r.known = d, d/2, true
		return
	}
	off := r.mean - d
	if off < 0 {
		off = -off
	}
	r.deviation += (off - r.deviation) / 4
	r.mean += (d - r.mean) / 8
}

// patience is how long an answer may take before the request is repeated: at most longest.
func (r *roundTrip) patience(longest int64) int64 {
	if !r.known {
		return longest
	}
	return min(max(r.mean+4*r.deviation, minPatience), longest)
}
