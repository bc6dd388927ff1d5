package direct

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// cut is readFrames in the simplest way.
func cut(stream []byte) (frames [][]byte, err error) {
	for len(stream) > 0 {
		if len(stream) < headBytes {
			return frames, io.ErrUnexpectedEOF
		}
		size := binary.BigEndian.Uint32(stream)
		if size > MaxFrame {
			return frames, ErrFrame
		}
		if stream = stream[headBytes:]; int(size) > len(stream) {
			return frames, io.ErrUnexpectedEOF
		}
		frames = append(frames, bytes.Clone(stream[:size]))
		stream = stream[size:]
	}
	return frames, io.EOF
}

// chunks reads in pieces whose sizes come from the stream itself.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	c.size = (c.size*31+7)%2000 + 1
	n := copy(b, c.rest[:min(len(c.rest), c.size)])
	c.rest = c.rest[n:]
	return n, nil
}

func FuzzReadFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendFrame(appendFrame(appendFrame(nil, []byte("a")), nil), bytes.Repeat([]byte("b"), 300)))
	f.Add([]byte{0, 16, 0, 1, 0})
	f.Add([]byte{0, 1, 0, 0, 'x'})
	f.Add(append(appendFrame(nil, make([]byte, readBytes)), 0, 0, 0))
	f.Fuzz(func(t *testing.T, stream []byte) {
		want, why := cut(stream)
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.DataErrReader(bytes.NewReader(stream)), &chunks{rest: stream}} {
			var got [][]byte
			err := readFrames(r, func(frame []byte) error {
				got = append(got, frame)
				return nil
			})
			if !errors.Is(err, why) {
				t.Fatalf("%v, want %v", err, why)
			}
			if len(got) != len(want) {
				t.Fatalf("%d frames, want %d", len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("frame %d is %d bytes, want %d", i, len(got[i]), len(want[i]))
				}
			}
		}
	})
}

func TestReadFramesStopsWhereItIsTold(t *testing.T) {
	stop := errors.New("enough")
	stream := appendFrame(appendFrame(nil, []byte("a")), []byte("b"))
	n := 0
	if err := readFrames(bytes.NewReader(stream), func([]byte) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d frames, %v", n, err)
	}
}

func BenchmarkReadFrames(b *testing.B) {
	frame := appendFrame(nil, make([]byte, 600))
	stream := bytes.Repeat(frame, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := readFrames(bytes.NewReader(stream), func([]byte) error { return nil }); err != io.EOF { //nolint:errorlint // itself
			b.Fatal(err)
		}
	}
}
