package journal

import "fmt"

// Mark names the segment that is written to, by its number and its seed, and sees to it that no later Open goes on with that segment.
// One with which this Open has gone on, since it was empty, an older copy may have too (a process that began it for a compaction and
// ended then had a mark of its own, of the segment before): then Mark begins another one first.
// Whoever keeps the mark elsewhere, and shows it to a later Open of the directory ([Replay.Lacks]), finds out whether the directory
// is what it was, or an older copy of it. Errors are those of Append.
func (j *Journal) Mark() (string, error) {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.segment.empty {
		if err := j.rotate(func() {}); err != nil {
			return "", err
		}
	}
	j.mu.Lock()
	err, empty, mark := j.usable(), j.written == j.segment.start+headerSize, fmt.Sprintf("%d-%016x", j.segment.number, j.segment.seed)
	j.mu.Unlock()
	if err == nil && empty {
		if err = j.mark(markSynced, headerSize); err == nil {
			err = j.sync()
		}
	}
	if err != nil {
		return "", err
	}
	return mark, nil
}

// Lacks says that the directory that was opened is not one of which a journal has given this mark: it is a copy that was made before,
// or another journal's. The segment of a mark was begun by the Open whose journal gave it, or since, with a seed of its own, and the
// numbers rise; so the segment is there, or was deleted by a compaction, and then later ones are there. A copy that was made later,
// before another Open, is not noticed.
func (p *Replay) Lacks(mark string) bool {
	var number, seed uint64
	if n, err := fmt.Sscanf(mark, "%d-%x", &number, &seed); err != nil || n != 2 {
		return true
	}
	for _, s := range p.segments {
		if s.number == number {
			return s.seed != seed
		}
	}
	return len(p.segments) == 0 || number > p.segments[len(p.segments)-1].number
}
