package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/opencluster/oclocks/subjects"
)

// maxLine is how long a line of a recording may be, in bytes.
const maxLine = 1 << 20

// Writer writes a recording: one JSON object a line, each by one call of Write, so that a process that is killed has recorded all that it
// did. It may be used by many goroutines.
type Writer struct {
	now func() int64

	mu   sync.Mutex
	w    io.Writer
	line bytes.Buffer
	last int64
	err  error
}

// NewWriter makes a writer. now gives the time of an event whose At is 0; all processes of a history must have the same clock there
// (CLOCK_BOOTTIME of one machine).
func NewWriter(w io.Writer, now func() int64) *Writer { return &Writer{w: w, now: now} }

// Add writes an event: before what it tells is done (Ask, Disbelieve), after it has come (Answer). An At of 0 is filled in; one that is
// earlier than that of the event before, by another goroutine, becomes the same. After an error it writes nothing more and
// returns that error again.
func (w *Writer) Add(e *Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	told := *e
	if told.At == 0 {
		told.At = w.now()
	}
	told.At = max(told.At, w.last)
	if w.err = w.write(&told); w.err == nil {
		w.last = told.At
	}
	return w.err
}

func (w *Writer) write(e *Event) error {
	if e.Kind == None || e.Kind >= kindCount {
		return fmt.Errorf("record an event: kind %d does not exist", e.Kind)
	}
	if int(e.Mode) >= len(modeWords) || int(e.Hold) >= len(holdWords) || int(e.Drain) >= len(drainWords) {
		return fmt.Errorf("record an event: mode %d, kind of hold %d or drain %d does not exist", e.Mode, e.Hold, e.Drain)
	}
	if !utf8.ValidString(e.Name) {
		return fmt.Errorf("record an event: the name %q is not UTF-8", e.Name)
	}
	w.line.Reset()
	if err := json.NewEncoder(&w.line).Encode(recordOf(e)); err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	if w.line.Len() > maxLine {
		return fmt.Errorf("record an event: %d bytes are more than %d", w.line.Len(), maxLine)
	}
	if _, err := w.w.Write(w.line.Bytes()); err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	return nil
}

// Reader reads a recording.
type Reader struct {
	lines *bufio.Reader
	line  int
	last  int64
	torn  bool
}

// NewReader makes a reader of what a Writer wrote.
func NewReader(r io.Reader) *Reader { return &Reader{lines: bufio.NewReaderSize(r, 64<<10)} }

// Torn says that the recording ended within a line: its process was killed there. What that line would have told did not happen yet.
func (r *Reader) Torn() bool { return r.torn }

// Next gives the next event, io.EOF after the last. A last line without an end is left out. Anything else that is no event, or an
// event that is earlier than the one before, is an error that names the line.
func (r *Reader) Next() (*Event, error) {
	line, err := r.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		r.torn = r.torn || len(line) > 0
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	r.line++
	e, err := parse(line)
	if err == nil && e.At < r.last {
		err = fmt.Errorf("its time %d is before %d", e.At, r.last)
	}
	if err != nil {
		return nil, fmt.Errorf("read a recording, line %d: %w", r.line, err)
	}
	r.last = e.At
	return e, nil
}

func parse(line []byte) (*Event, error) {
	var rec record
	from := json.NewDecoder(bytes.NewReader(line))
	from.DisallowUnknownFields()
	if err := from.Decode(&rec); err != nil {
		return nil, err
	}
	return rec.event()
}

// record is an event in a recording.
type record struct {
	At      int64    `json:"at"`
	Kind    string   `json:"kind"`
	Op      string   `json:"op,omitempty"`
	Zone    string   `json:"zone,omitempty"`
	Client  string   `json:"client,omitempty"`
	Session string   `json:"session,omitempty"`
	Request string   `json:"request,omitempty"`
	Of      string   `json:"of,omitempty"`
	Name    string   `json:"name,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	Hold    string   `json:"hold,omitempty"`
	Drain   string   `json:"drain,omitempty"`
	Take    uint32   `json:"take,omitempty"`
	Slots   uint32   `json:"slots,omitempty"`
	Code    int      `json:"code,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Why     string   `json:"why,omitempty"`
	Was     string   `json:"was,omitempty"`
	Token   uint64   `json:"token,omitempty"`
	Ticket  uint64   `json:"ticket,omitempty"`
	Key     uint64   `json:"key,omitempty"`
	TTL     int64    `json:"ttl,omitempty"`
	Lease   int64    `json:"lease,omitempty"`
	Grace   int64    `json:"grace,omitempty"`
	Wait    int64    `json:"wait,omitempty"`
	Until   int64    `json:"until,omitempty"`
	Since   int64    `json:"since,omitempty"`
	Plain   bool     `json:"plain,omitempty"`
	Now     bool     `json:"now,omitempty"`
	Ended   bool     `json:"ended,omitempty"`
	Weak    bool     `json:"weak,omitempty"`
	Part    bool     `json:"part,omitempty"`
	Current bool     `json:"current,omitempty"`
	Incarn  uint64   `json:"incarnation,omitempty"`
	Place   string   `json:"place,omitempty"`
	Newest  uint64   `json:"newest,omitempty"`
	Oldest  uint64   `json:"oldest,omitempty"`
	Tokens  int      `json:"tokens,omitempty"`
	Holders []Holder `json:"holders,omitempty"`
	Queue   []Waiter `json:"queue,omitempty"`
	Bucket  uint32   `json:"bucket,omitempty"`
	Buckets uint32   `json:"buckets,omitempty"`
}

// The words of modes, kinds of holds and drains in a recording; the default has none.
var (
	modeWords  = []string{"", subjects.Shared.String(), subjects.Semaphore.String()}
	holdWords  = []string{"", subjects.Static.String(), subjects.Connection.String()}
	drainWords = []string{"", subjects.Soft.String(), subjects.Timed.String()}
)

func recordOf(e *Event) *record {
	return &record{
		e.At, e.Kind.String(), e.Op.String(), e.Zone, e.Client, e.Session, e.Request, e.Of, e.Name,
		modeWords[e.Mode], holdWords[e.Hold], drainWords[e.Drain], e.Take, e.Slots, e.Code, e.Reason, e.Why, e.Was, e.Token, e.Ticket, e.Key,
		int64(e.TTL), int64(e.Lease), int64(e.Grace), int64(e.Wait), e.Until, e.Since, e.Plain, e.Now, e.Ended, e.Weak, e.Part, e.Current,
		e.Incarnation, e.Place, e.Newest, e.Oldest, e.Tokens, e.Holders, e.Queue, e.Bucket, e.Buckets,
	}
}

func (r *record) event() (*Event, error) {
	kind := slices.Index(kindWords[:], r.Kind)
	if kind <= 0 {
		return nil, fmt.Errorf("there is no kind %q", r.Kind)
	}
	op, ok := subjects.ParseOp(r.Op)
	if !ok && r.Op != "" {
		return nil, fmt.Errorf("there is no operation %q", r.Op)
	}
	mode, hold, drain := slices.Index(modeWords, r.Mode), slices.Index(holdWords, r.Hold), slices.Index(drainWords, r.Drain)
	if mode < 0 || hold < 0 || drain < 0 {
		return nil, fmt.Errorf("there is no mode %q, kind of hold %q or drain %q", r.Mode, r.Hold, r.Drain)
	}
	return &Event{
		r.At, Kind(kind), op, r.Zone, r.Client, r.Session, r.Request, r.Of, r.Name,
		subjects.Mode(mode), subjects.Kind(hold), subjects.Drain(drain), r.Take, r.Slots, r.Code, r.Reason, r.Why, r.Was, r.Token, r.Ticket, r.Key,
		time.Duration(r.TTL), time.Duration(r.Lease), time.Duration(r.Grace), time.Duration(r.Wait), r.Until, r.Since, r.Plain, r.Now, r.Ended,
		r.Weak, r.Part, r.Current, r.Incarn, r.Place, r.Newest, r.Oldest, r.Tokens, r.Holders, r.Queue, r.Bucket, r.Buckets,
	}, nil
}
