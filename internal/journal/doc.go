// Package journal is the append-only store of a node's changes: the bytes that go down the chain also go here, so that a
// restart loses no lock. One directory has the changes of all buckets of a node.
//
// The journal does not know what the bytes mean, and it decides nothing: it keeps records in the order in which they were
// appended, gives them back after a restart, and says whether some may be missing.
//
// # Use
//
//	j, replay, err := journal.Open(dir, journal.Options{})
//	err = replay.Each(func(bucket uint32, seq uint64, kind journal.Kind, payload []byte) error { … })
//	if replay.Unclean { … } // begin a new life, then:
//	err = j.Settled()
//	err = j.Append(batch) // returns after write(2), with Sync: Always after fsync
//	err = j.Close(true)
//
// [Journal.Mark] is for whoever wants to find out, at a later start, whether the directory was replaced by an older copy of itself.
//
// When [Journal.NeedsCompaction] says so: [Journal.StartCompaction], then one Append of a Snapshot for every bucket, each
// by the goroutine that owns the bucket. The journal deletes the old segments by itself once all are there.
//
// # What it promises
//
// After Append returned nil, the batch survives the death of the process. With Sync: Always it survives the death of the
// machine too; with Background, what is older than a second does. Records are given back in the order of Append, a prefix
// of them, never with a gap. If records may be missing for which Append returned nil, [Replay].Unclean is true, and it stays true over
// further restarts, clean ones too, until the caller has dealt with what may be missing and calls [Journal.Settled].
//
// After an error of write or fsync the journal refuses everything (ErrFailed). A kernel may drop the pages that it could
// not write and report the next fsync as a success (fsyncgate), so trying again proves nothing. The failure leaves a file
// named "failed" behind that makes the next Open count as unclean.
//
// # Files
//
// The directory (mode 0700) has the files (0600) journal-00000001.log, journal-00000002.log, …, the segments; "lock", which
// an open journal holds with flock(2); and after a failure "failed". Every Open begins a new segment; so does a compaction
// and a segment that has grown to SegmentBytes. All integers are little endian.
//
// A segment begins with a header of 48 bytes:
//
//	 0  8  magic, "oclocksJ"
//	 8  4  version of the format, 1
//	12  4  1 if an unclean start is not settled, else 0
//	16  8  number of the segment, as in its name
//	24  8  seed, random
//	32  8  xxhash64 of the kernel's boot id; 0 if it is not known
//	40  8  xxhash64 of the 40 bytes before
//
// Then come records, each a head of 32 bytes and its payload:
//
//	 0  8  sum: xxhash64 of everything behind it in this record, seeded with the sum of the record before; the first
//	       record's is seeded with the header's
//	 8  4  check: the low half of xxhash64 of the rest of the head, seeded with the segment's seed XOR the head's offset
//	12  4  length of the payload, at most 64 MiB
//	16  4  bucket
//	20  8  seq
//	28  1  kind: 1 change, 2 snapshot, 3 link, 4 synced, 5 clean, 6 base, 7 settled
//	29  1  1 in the last part of a snapshot, else 0
//	30  2  part of a snapshot, counted from 0
//	32     payload
//
// A snapshot of more than 1 MiB is cut into parts, with records of other buckets between them. The kinds 3 to 7 are marks
// of the journal's own, without bucket and payload. Link: the first record of every segment that has any; seq is the sum of
// the last record in the segments before, 0 if there is none. Synced: the first seq bytes of this segment were on disk before the
// mark was written. Clean: the journal was shut down here, and everything before it is on disk. Base: segments with a
// number below seq are not needed any more. Settled: Settled was called.
//
// # Why the sums are as they are
//
// The sum is chained so that a record belongs to one place: one that is torn, repeated, lost or swapped breaks the chain,
// and so does one that the disk brings back from a deleted file, because each file has its own random seed. The link makes
// one chain of all segments: an earlier one that has lost its end is noticed. The check makes
// a head recognisable by itself. So a wrong length is noticed before it is trusted, and after a bad record it can be told
// whether others follow it. Neither protects against somebody who can write to the directory.
//
// # What a bad record means
//
// In the last segment that has records, and only there, a crash can leave bad bytes at the end: they are cut off and
// counted in [Replay].Torn. It is a crash, and not a disk that loses what it had, if
//
//   - no record follows the bad one; or
//   - the machine restarted meanwhile and no mark that follows says that the bad bytes were on disk: what was not synced
//     reaches the disk in any order when a machine dies.
//
// Everything else is ErrCorrupt: Open changes nothing and says in which file and where. A segment gets its first record
// only after its header and the whole segment before it were synced, which is why nothing but its last one can be torn.
//
// # Order of locks
//
// Journal.syncing is held by whoever calls fsync or changes the segment, Journal.mu by whoever encodes and writes; syncing
// is taken first. Append takes mu alone, so that in Background mode nobody waits for the disk; with Always the callers
// queue for syncing, and the first one's fsync serves all who wrote before it began.
//
// Read in this order: journal.go, append.go, sync.go, compact.go; format.go, segment.go, survey.go, tail.go, inspect.go,
// open.go, replay.go, mark.go; options.go, fs.go, lock_flock.go, errors.go.
package journal
